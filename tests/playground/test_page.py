"""The page of the playground in a real browser, with a fake server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.playground.fake_api import TOOLS, FakeApi, tool
from tests.playground.real_page import RULES, message, violations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytest.importorskip("playwright")

pytestmark = [
    pytest.mark.external("chromium"),
    pytest.mark.timeout(120),
]


def expect(what: Any) -> Any:
    """Import it at first use: the module is collected in each process of `make test` too."""
    from playwright.sync_api import expect as wait

    return wait(what)


DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeApi]:
    """Serve the page."""
    api = FakeApi()
    yield api
    api.close()


@pytest.fixture
def api(server: FakeApi) -> FakeApi:
    """Return the fake server in its initial state."""
    server.reset()
    return server


@pytest.fixture
def page(browser: Browser, api: FakeApi, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Open the page; any error in it fails the test."""
    options: dict[str, Any] = {"viewport": DESKTOP, **getattr(request, "param", {})}
    context = browser.new_context(**options)
    context.set_default_timeout(8_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None
    )
    page.goto(api.url)
    expect(page.locator(".entry").first).to_be_attached()
    yield page
    context.close()
    assert wrong == []


def choose(page: Page, name: str) -> None:
    """Choose a tool or an agent in the list."""
    page.locator(".entry", has=page.get_by_text(name, exact=True)).click()


def run(page: Page, name: str, url: str | None = "https://cats.example") -> None:
    """Choose a tool, fill in its one field and run it."""
    choose(page, name)
    if url is not None:
        page.get_by_role("textbox", name="url").fill(url)
    page.keyboard.press("Control+Enter")


def arguments(page: Page) -> Any:
    """Return the content of the JSON editor."""
    return json.loads(page.locator("#json-editor").input_value())


def test_errors_are_shown_at_their_fields_until_they_are_fixed(page: Page, api: FakeApi) -> None:
    """An error of the server is shown at its field, and the first such field has the focus."""
    choose(page, "search")
    page.get_by_role("button", name="Run").click()

    query = page.get_by_role("textbox", name="query")
    expect(query).to_be_focused()
    expect(query).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("2 problems", exact=True)).to_be_visible()

    query.fill("cats")
    page.get_by_role("textbox", name="limit").fill("99")
    expect(page.locator(".fault", has_text="must be 1 to 50, got 99")).to_be_visible()

    page.get_by_role("textbox", name="limit").fill("5")
    expect(page.get_by_text("These arguments are valid.")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("treeitem", name="search")).to_contain_text("done")
    assert api.runs[-1].told["arguments"]["limit"] == 5


def test_a_badge_is_shown_for_a_hint_that_differs_from_its_default(page: Page) -> None:
    """Badges on every tool would say nothing; `search` sets `openWorldHint` to its default."""
    expected = {
        "search": ["read-only"],
        "crawl": ["streaming"],
        "delete_file": ["destructive"],
        "deploy": ["approval"],
        "picture": [],
    }
    shown = {
        name: page.locator(".entry", has=page.get_by_text(name, exact=True))
        .locator(".badge")
        .all_inner_texts()
        for name in expected
    }
    assert shown == expected


def test_the_first_run_is_explained(page: Page) -> None:
    """The panel of runs says what to do until there is one."""
    guidance = page.get_by_role("region", name="Runs", exact=True)
    expect(guidance).to_contain_text("Nothing has run yet.")
    expect(guidance.get_by_role("listitem").first).to_contain_text("Choose a tool on the left")
    guidance.get_by_role("button", name="Show all keys").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    run(page, "picture", url=None)
    expect(guidance.get_by_text("Nothing has run yet.")).to_have_count(0)


def test_run_shows_its_progress_and_is_cancelled(page: Page, api: FakeApi) -> None:
    """A long call always shows its state and can be cancelled.

    Its text is not rendered as markup.
    """
    run(page, "crawl")

    bar = page.get_by_role("progressbar", name="Progress of crawl")
    expect(bar).to_have_attribute("aria-valuenow", "3")
    call = page.get_by_role("treeitem", name="crawl")
    expect(call).to_contain_text("warning one page is slow")
    expect(call).to_contain_text("<b>first page</b>")
    with api.going() as going:
        going.say("notify_stream_event", "c1", name="crawl", data="and more", is_delta=True)
    expect(call).to_contain_text("<b>first page</b> and more")

    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(call).to_contain_text("cancelled")
    expect(call.locator(".took")).to_have_text("0.4 s")
    expect(page.get_by_text("The run was cancelled.")).to_be_visible()


def test_a_destructive_tool_asks_for_confirmation(page: Page, api: FakeApi) -> None:
    """A wrong key must not delete anything; Esc means no."""
    run(page, "delete_file", "/data")
    dialog = page.get_by_role("dialog", name="Run delete_file?")
    expect(dialog).to_contain_text("/data")
    expect(dialog.get_by_role("button", name="Keep as it is")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert api.runs == []

    page.keyboard.press("Control+Enter")
    dialog.get_by_role("button", name="Run delete_file").click()
    expect(page.get_by_role("treeitem", name="delete_file")).to_contain_text("done")
    assert api.posted[-1][1]["confirmed"] is True


def test_approval_resumes_with_the_edited_arguments(page: Page, api: FakeApi) -> None:
    """A person can change the arguments before approving."""
    run(page, "deploy")
    card = page.get_by_role("region", name="Approve deploy?")
    card.get_by_role("textbox", name="Arguments").fill('{"url": "v2"')
    expect(card.get_by_role("button", name="Approve")).to_be_disabled()
    card.get_by_role("textbox", name="Arguments").fill('{"url": "v2"}')
    card.get_by_role("button", name="Approve with changes").click()

    expect(page.get_by_role("treeitem", name="deploy")).to_contain_text("done")
    (decision,) = api.posted[-1][1]["decisions"]
    assert decision == {"call_id": "c1", "path": [], "approve": True, "arguments": '{"url": "v2"}'}


def test_a_result_that_is_stored_after_the_end_is_shown(page: Page, api: FakeApi) -> None:
    """The page asks again while the server says that the run goes on."""
    run(page, "crawl")
    with api.going() as going:
        going.answer("ten pages", "c1", name="crawl")
        going.end(text="ten pages")
        whole = dict(going.result)
        going.result |= {"model": [], "value": None}
        going.told["status"] = "running"
    expect(page.get_by_role("treeitem", name="crawl")).to_contain_text("done")
    expect(page.get_by_role("region", name="Result")).to_have_count(0)
    with api.going() as going:
        going.result |= whole
        going.told["status"] = "ok"
    expect(page.get_by_role("region", name="Result")).to_contain_text("ten pages")


def test_an_approval_does_not_take_the_keys_of_a_person_who_types(page: Page, api: FakeApi) -> None:
    """A card that took the focus would get the text that belongs to another field."""
    run(page, "crawl")
    choose(page, "deploy")
    page.get_by_role("textbox", name="url").fill("https://x.test")
    with api.going() as going:
        going.wait({"call_id": "c1", "name": "crawl", "arguments": "{}"})
    card = page.get_by_role("region", name="Approve crawl?")
    expect(card).to_be_visible()
    expect(page.get_by_role("textbox", name="url")).to_be_focused()
    card.get_by_role("textbox", name="Arguments").fill('{"depth": 2}')
    page.get_by_role("tab", name="History").click()
    page.get_by_role("tab", name="Run", exact=True).click()
    expect(card.get_by_role("textbox", name="Arguments")).to_have_value('{"depth": 2}')
    expect(page.locator(".unseen[role=status]")).to_contain_text("crawl: needs approval")


def test_approval_can_wait_and_be_denied_with_a_reason(page: Page, api: FakeApi) -> None:
    """Going elsewhere decides nothing; the run still waits."""
    run(page, "deploy")
    card = page.get_by_role("region", name="Approve deploy?")
    expect(card).to_be_visible()
    choose(page, "search")
    expect(card).to_be_visible()
    card.get_by_role("textbox", name="Message to the model").fill("not on Friday")
    card.get_by_role("button", name="Reject").click()

    expect(page.get_by_role("treeitem", name="deploy")).to_contain_text("not on Friday")
    assert api.posted[-1][1]["decisions"][0]["message"] == "not on Friday"


def test_form_and_json_have_the_same_value(page: Page) -> None:
    """Both can be edited; invalid JSON is kept with its error position and not run."""
    choose(page, "search")
    page.get_by_role("textbox", name="query").fill("cats")
    assert arguments(page)["query"] == "cats"

    editor = page.locator("#json-editor")
    editor.fill('{"query": "dogs", "limit": 12345678901234567890}')
    expect(page.get_by_role("textbox", name="query")).to_have_value("dogs")
    expect(page.get_by_role("textbox", name="limit")).to_have_value("12345678901234567890")

    editor.fill('{\n  "query": "birds",\n}')
    expect(page.get_by_role("button", name="Line 3, column 1")).to_be_visible()
    expect(page.get_by_role("textbox", name="query")).to_be_disabled()
    page.keyboard.press("Control+Enter")
    expect(editor).to_be_focused()
    expect(editor).to_have_value('{\n  "query": "birds",\n}')
    page.get_by_role("button", name="Go back to the last valid arguments").click()
    assert arguments(page) == {"query": "dogs", "limit": 12345678901234567890}


def test_every_kind_of_field_writes_its_value(page: Page) -> None:
    """No field of a common schema falls back to JSON, and none changes the input."""
    choose(page, "search")

    def box(name: str) -> Any:
        return page.get_by_role("textbox", name=name, exact=True)

    box("query").fill("two\nlines")
    box("limit").fill("7")
    page.get_by_label("exact").select_option("true")
    page.get_by_label("order").select_option("new")
    box("version").focus()
    page.get_by_role("button", name="note is null").click()
    page.get_by_role("button", name="Set tags").click()
    page.get_by_role("button", name="Add to tags").click()
    expect(box("tags 1")).to_be_focused()
    box("tags 1").fill("b")
    page.get_by_role("button", name="Add to tags").click()
    box("tags 2").fill("a")
    page.get_by_role("button", name="Move tags 2 up").click()
    page.get_by_label("Variant of pet").select_option("Dog")
    page.get_by_role("checkbox", name="good").check()
    box("place 1").fill("-1.5")
    page.get_by_role("button", name="Set weights").click()
    page.get_by_role("button", name="Add entry").click()
    box("Key in weights").fill("fur")
    box("weights fur").fill("0.25")
    page.get_by_label("since").fill("2026-11-21")
    box("when").fill("2026-11-21T12:00:00Z")
    page.get_by_label("File for data").set_input_files(
        {"name": "x.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff"}
    )
    page.get_by_role("button", name="Set tree").click()
    box("name").fill("root")
    page.get_by_role("button", name="Set children").click()
    page.get_by_role("button", name="Add to children").click()
    page.get_by_role("button", name="Set size").click()
    page.get_by_label("Variant of size").select_option("string")
    box("size").fill("big")
    box("extra").fill('{"any": [1]}')

    expect(box("data")).to_have_value("AP8=")
    assert arguments(page) == {
        "query": "two\nlines",
        "limit": 7,
        "exact": True,
        "order": "new",
        "version": 2,
        "note": None,
        "tags": ["a", "b"],
        "pet": {"kind": "dog", "good": True},
        "place": [-1.5, ""],
        "weights": {"fur": 0.25},
        "since": "2026-11-21",
        "when": "2026-11-21T12:00:00Z",
        "data": "AP8=",
        "tree": {"name": "root", "children": [{}]},
        "size": "big",
        "extra": {"any": [1]},
    }
    assert violations(page) == []


def test_json_box_keeps_what_is_not_json(page: Page, api: FakeApi) -> None:
    """A tool must not run with arguments that differ from the form."""
    choose(page, "search")
    page.get_by_role("button", name="Use example").click()
    extra = page.get_by_role("textbox", name="extra")
    extra.fill('{"a": ')
    expect(page.get_by_text("Line 1, column 7: a value is expected here")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(extra).to_be_focused()
    choose(page, "picture")
    choose(page, "search")
    expect(extra).to_have_value('{"a": ')
    assert api.runs == []


def test_past_runs_are_opened_edited_run_again_and_exported(page: Page, api: FakeApi) -> None:
    """A call does not have to be typed twice, and can be exported as a test."""
    run(page, "crawl")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    choose(page, "picture")
    page.get_by_role("tab", name="History").click()
    page.get_by_role("button", name="Actions for crawl").click()

    page.get_by_role("button", name="Edit and run").click()
    expect(page.get_by_role("textbox", name="url")).to_have_value("https://cats.example")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as test").click()
    assert saved.value.suggested_filename == "test_crawl.py"
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.get_by_role("status").filter(has_text="Python copied")).to_be_attached()

    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    assert [path for path, _ in api.posted][-1] == "POST runs/run1/rerun"
    page.get_by_role("tab", name="History").click()
    expect(page.locator(".history li")).to_have_count(2)
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete all").click()
    expect(page.get_by_text("No runs yet.")).to_be_visible()


def test_agent_run_is_a_conversation_with_its_calls_in_place(page: Page) -> None:
    """Calls of a nested agent are shown below it even if all of them are called `c1`."""
    choose(page, "researcher")
    message(page).fill("How many cats?")
    page.keyboard.press("Control+Enter")

    tree = page.get_by_role("tree")
    expect(tree.locator(".input")).to_have_text("How many cats?")
    expect(tree.locator(".said")).to_have_text(["Let me look that up.", "There are three cats."])
    expert = tree.get_by_role("treeitem", name="ask_expert")
    expect(expert.get_by_role("treeitem")).to_have_count(2)
    expect(expert.get_by_role("treeitem", name="crawl")).to_contain_text("no such site")

    page.get_by_role("tab", name="Timeline").click()
    page.get_by_role("button", name="ask_expert: begins at").focus()
    crawl = page.get_by_role("button", name="crawl: begins at")
    bars = page.locator(".bar-row")
    for _ in range(bars.count()):
        if crawl.evaluate("bar => bar === document.activeElement"):
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    facts = page.locator(".timeline .facts")
    expect(facts).to_contain_text(re.compile("Pathc1 . c2"))
    expect(facts).to_contain_text("tool error")
    expect(facts).to_contain_text(re.compile(r"Takes0\.4 s"))


def test_the_usage_of_an_agent_shows_its_cost(page: Page) -> None:
    """The cost of each agent and model is shown, also if that of the run is not known."""
    choose(page, "researcher")
    message(page).fill("How many cats?")
    page.keyboard.press("Control+Enter")
    page.get_by_role("tab", name="Usage").click()
    facts = page.locator(".result .facts")
    expect(facts.locator("dt")).to_have_text(
        [
            "requests",
            "input tokens",
            "cost",
            "cost of researcher (large)",
            "cost of expert (small)",
        ]
    )
    expect(facts.locator("dd")).to_have_text(["2", "1,234", "unknown", "$1.25", "unknown"])


@pytest.mark.requirement("F23")
def test_a_lost_connection_is_shown_and_the_stream_resumes(page: Page, api: FakeApi) -> None:
    """Events resume by id, so that none is missing and none is shown twice."""
    run(page, "crawl")
    call = page.get_by_role("treeitem", name="crawl")
    expect(call).to_contain_text("first page")
    api.lose()
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    with api.going() as going:
        going.say("notify_stream_event", "c1", name="crawl", data="meanwhile", is_delta=True)
        going.answer("ten pages", "c1", name="crawl")
        going.end(text="ten pages")
    api.lose(False)
    page.evaluate("dispatchEvent(new Event('agents-tools-retry'))")

    expect(page.get_by_text("Connection lost.")).to_have_count(0)
    expect(call.locator(".stream")).to_have_text("<b>first page</b> meanwhile")
    expect(page.get_by_role("region", name="Result")).to_contain_text("ten pages")


def test_changed_file_shows_its_tools_or_its_problems(page: Page, api: FakeApi) -> None:
    """While a file is broken, its last good version stays usable and the input is kept."""
    choose(page, "crawl")
    page.get_by_role("textbox", name="url").fill("https://kept.example")
    api.change([*TOOLS, tool("fresh", "New.", {"type": "object"})], [])
    expect(page.locator(".banner", has_text="Reloaded. changed: fresh")).to_be_visible()
    expect(page.locator(".entry", has_text="fresh")).to_be_visible()

    api.change(TOOLS, [{"place": "tools.py:3", "message": "'(' was never closed"}])
    expect(page.get_by_text("tools.py:3")).to_be_visible()
    expect(page.get_by_role("textbox", name="url")).to_have_value("https://kept.example")
    assert violations(page) == []


def test_ten_thousand_deltas_are_shown_without_a_pause(page: Page) -> None:
    """The drawn output is bounded, and the page stays responsive."""
    run(page, "flood", None)

    call = page.get_by_role("treeitem", name="flood")
    expect(call).to_contain_text("done")
    expect(call.locator(".stream")).to_contain_text("word9999")
    expect(call).to_contain_text("earlier lines")
    assert page.locator(".line").count() <= 250
    assert len(call.locator(".stream").inner_text()) < 30_000


def test_pictures_are_shown_and_saved(page: Page) -> None:
    """An artifact is shown where it appears."""
    run(page, "picture", None)
    picture = page.get_by_role("img", name="plot.png")
    expect(picture).to_be_visible()
    assert picture.evaluate("(one) => one.naturalWidth") == 96
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "plot.png"


def test_the_page_works_with_the_keyboard_alone(page: Page) -> None:
    """Lists, tabs and the tree follow the ARIA keyboard patterns."""
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    search.fill("nowhere")
    expect(page.get_by_text("Nothing matches “nowhere”.")).to_be_visible()
    search.fill("expert find")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message")).to_be_focused()
    page.keyboard.type("hello")
    page.keyboard.press("Control+Enter")

    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem")).to_have_count(4)
    tree.get_by_role("treeitem").first.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(tree.get_by_role("treeitem", name=re.compile("^search"))).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem")).to_have_count(2)

    page.get_by_role("tab", name="Run", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Timeline")).to_be_focused()
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")


def test_page_without_its_token_shows_how_to_get_access(page: Page, api: FakeApi) -> None:
    """A token is removed from the address; a wrong one must not end in an empty page."""
    assert "token" not in page.url
    page.evaluate("sessionStorage.clear()")
    page.reload()
    expect(page.get_by_role("heading", name="This page needs its token")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("textbox", name="Token").fill(api.url.partition("=")[2])
    page.keyboard.press("Enter")
    expect(page.locator(".entry").first).to_be_visible()


@pytest.mark.parametrize("page", [{"viewport": PHONE, "has_touch": True}], indirect=True)
def test_phone_shows_one_pane_at_a_time(page: Page) -> None:
    """The panes switch with the steps of a run, and nothing is wider than the screen."""
    choose(page, "crawl")
    page.get_by_role("textbox", name="url").fill("https://cats.example")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("textbox", name="url")).to_be_hidden()
    panes = page.get_by_role("tablist", name="Panes")
    expect(panes.get_by_role("tab", name="Runs")).to_have_attribute("aria-selected", "true")
    for name in ("Tools", "Edit", "Runs"):
        panes.get_by_role("tab", name=name).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(
    "page",
    [
        {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce"}
        for size, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"))
    ],
    indirect=True,
    ids=["wide light", "wide dark", "phone light"],
)
def test_axe_finds_nothing(page: Page) -> None:
    """This covers names, roles, contrast and order in each state, theme and width."""
    found: dict[str, list[str]] = {}
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    rules = {"runOnly": ["color-contrast"]} if dark else RULES  # the theme changes only colours

    def pane(name: str) -> None:
        tab = page.get_by_role("tablist", name="Panes").get_by_role("tab", name=name)
        if page.viewport_size == PHONE:
            tab.click()

    found["list"] = violations(page, rules)
    choose(page, "search")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("2 problems", exact=True)).to_be_visible()
    found["faults"] = violations(page, rules)
    page.get_by_role("tab", name="What the model sees").click()
    expect(page.get_by_text("412 tokens")).to_be_visible()
    found["views"] = violations(page, rules)
    page.get_by_role("tab", name="Arguments").click()
    pane("Tools")
    run(page, "crawl")
    expect(page.get_by_role("progressbar")).to_be_visible()
    found["running"] = violations(page, rules)
    pane("Tools")
    run(page, "deploy")
    expect(page.get_by_role("region", name="Approve deploy?")).to_be_visible()
    found["approval"] = violations(page, rules)
    pane("Tools")
    choose(page, "researcher")
    found["new conversation"] = violations(page, rules)
    message(page).fill("cats")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("article")).to_contain_text("done")
    found["chat"] = violations(page, rules)
    pane("Runs")
    expect(page.get_by_role("region", name="Result")).to_be_visible()
    found["agent"] = violations(page, rules)
    page.get_by_role("tab", name="Timeline").click()
    found["timeline"] = violations(page, rules)
    page.get_by_role("tab", name="History").click()
    page.get_by_role("button", name="Actions for researcher").click()
    found["history"] = violations(page, rules)
    assert {state: faults for state, faults in found.items() if faults} == {}


def ask(page: Page, name: str) -> Any:
    """Choose an agent, send it a message and return the tree of its run."""
    choose(page, name)
    message(page).fill("go")
    page.keyboard.press("Control+Enter")
    return page.get_by_role("tree")


def test_streamed_answer_is_replaced_by_the_item_and_dropped_on_retry(page: Page) -> None:
    """A retry starts with an empty answer; a model that does not stream shows the same text."""
    tree = ask(page, "stumbler")

    expect(tree.locator(".said")).to_have_text(["right.", "whole"])
    again = "the model did not answer (attempt 1); trying again"
    expect(tree.locator(".line")).to_contain_text([again])
    call = tree.get_by_role("treeitem").nth(1)
    expect(call).to_contain_text(re.compile("^g.*done"))
    expect(tree.get_by_role("treeitem")).to_have_count(2)
    order = re.compile(f"{re.escape(again)}.*right\\..*done.*whole", re.DOTALL)
    expect(tree).to_contain_text(order)


def test_thousand_calls_are_drawn_in_parts(page: Page) -> None:
    """The newest calls and artifacts are drawn, the others on request."""
    tree = ask(page, "crowd")

    calls = tree.get_by_role("treeitem")
    newest = calls.last
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    newest.locator(".toggle").click()
    expect(newest).to_contain_text("299.txt")
    expect(newest).to_contain_text("earlier artifacts")
    assert newest.locator(".artifact").count() <= 63
    assert calls.count() <= 201
    tree.get_by_role("button", name="Show earlier (850)").click()
    expect(calls).to_have_count(352)

    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_text(re.compile(r"^[\d,]+ earlier bars$"))).to_be_visible()
    expect(page.locator(".timeline li")).to_have_count(200)


def test_thousand_tools_are_searched(page: Page, api: FakeApi) -> None:
    """A long list is as responsive as a short one."""
    many = [tool(f"tool_{index}", f"Number {index}.", {"type": "object"}) for index in range(1_000)]
    api.change(many, [])
    expect(page.locator(".entry")).to_have_count(1_003)
    page.get_by_role("searchbox").fill("number 777.")
    expect(page.locator(".entry")).to_have_count(1)
    page.locator(".entry").click()
    expect(page.get_by_role("heading", name="tool_777")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".entry")).to_have_count(1_003)
    expect(page.locator(".entry[aria-current]")).to_have_text(re.compile("tool_777"))


def test_copying_reports_success_or_failure(page: Page) -> None:
    """A browser can reject access to the clipboard; then no success is shown."""
    page.evaluate("""() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
      document.execCommand = () => false;
    }""")
    choose(page, "search")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="JSON not copied")).to_be_attached()
    page.evaluate("navigator.clipboard.writeText = async () => {}")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="JSON copied")).to_be_attached()


TARGET = '''
from agents_tools import Agent, NotifyStreamEvent, function_tool, progress, streaming_tool
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call

@streaming_tool
async def count(to: int):
    """Count."""
    progress(1, to, "begun")
    yield NotifyStreamEvent(data="one ", is_delta=True)
    yield f"counted to {to}"

@needs_approval()
@function_tool
async def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"

inner = Agent(name="inner", tools=[count], model=ScriptedModel([tool_call("count", to=2), "two"]))
outer = Agent(
    name="outer",
    tools=[inner.as_tool(tool_name="ask", tool_description="Ask.", streaming=True), drop],
    model=ScriptedModel([tool_call("ask", input="go"), tool_call("drop", table="t"), "all done"]),
)
'''


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve a real target with the real command."""
    target = tmp_path / "target.py"
    target.write_text(TARGET)
    command = [sys.executable, "-m", "agents_tools", "dev", str(target), "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--no-open", "--no-history", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def test_page_works_with_the_real_server(browser: Browser, address: str) -> None:
    """The other tests use a fake server; this one checks that the fake matches the real one."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.set_default_timeout(15_000)
    page.goto(address)

    choose(page, "count")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("textbox", name="to")).to_be_focused(timeout=15_000)
    page.get_by_role("textbox", name="to").fill("4")
    page.keyboard.press("Control+Enter")
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("counted to 4", timeout=15_000)

    choose(page, "outer")
    message(page).fill("go")
    page.keyboard.press("Control+Enter")
    card = page.get_by_role("region", name="Approve drop?")
    card.get_by_role("textbox", name="Arguments").fill('{"table": "other"}')
    card.get_by_role("button", name="Approve with changes").click()
    expect(result).to_contain_text("all done", timeout=15_000)
    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem", name=re.compile("^count"))).to_contain_text("1 of 2")
    took = tree.get_by_role("treeitem", name=re.compile("^outer")).locator(".took").first
    expect(took).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    assert violations(page) == []

    page.get_by_role("tab", name="History").click()
    expect(page.locator(".history li")).to_have_count(2)
    page.close()
