"""End-to-end: the conversation with an agent and the timeline of its runs, in a real browser."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.playground.real_page import (
    PATIENCE,
    PHONE,
    ROOT,
    choose,
    dev,
    message,
    opened,
    save_screenshot,
    seen,
    violations,
)
from tests.playground.test_stores import PROGRAM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.external("chromium"),
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
]
expect: Any = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a target."""
    shutil.copy(Path(__file__).with_name("shop.py"), tmp_path)
    return tmp_path


def turns(page: Page) -> Any:
    return page.get_by_role("article", name="Turn")


def write(page: Page, text: str) -> None:
    """Send a message with the keyboard, once the agent has answered the one before."""
    expect(page.get_by_text("starts a line")).to_be_visible(timeout=PATIENCE)
    message(page).fill(text)
    message(page).press("Enter")


def test_a_conversation_with_markdown_approvals_and_a_reload(
    browser: Browser, folder: Path
) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "Clerk")
        write(page, "price please")
        answer = turns(page).first.locator(".markdown")
        expect(answer.get_by_role("heading", name="Prices")).to_be_visible(timeout=PATIENCE)
        expect(answer.get_by_role("cell", name="24.00")).to_be_visible(timeout=PATIENCE)
        expect(answer.locator("ol > li > ul > li")).to_have_text("mind the terms")
        expect(answer.locator("strong")).to_have_text("found")
        seen(answer, "<b>Not bold.</b> [No link](javascript:alert(1))")
        expect(answer.get_by_role("link")).to_have_count(1)
        seen(turns(page).first.locator(".chat-call"), "price")
        write(page, "order it")
        card = page.get_by_role("region", name="Approve order?")
        expect(card).to_be_visible(timeout=PATIENCE)
        expect(card).to_have_count(1)
        expect(message(page)).to_be_focused()
        save_screenshot(page, "20_chat_approval")
        card.get_by_role("textbox", name="Arguments").fill('{"sacks": 5}')
        card.get_by_role("button", name="Approve with changes").click()
        seen(turns(page).nth(1), "Message 2 was order it.")
        write(page, "bake now")
        page.reload()
        expect(turns(page)).to_have_count(3, timeout=PATIENCE)
        seen(turns(page).nth(2), "Message 3 was bake now.")
        seen(turns(page).first, "Prices are without taxes.")
        save_screenshot(page, "21_chat")
        page.get_by_role("button", name="New conversation").click()
        expect(turns(page)).to_have_count(0)
        write(page, "hello")
        seen(turns(page), "Message 1 was hello.")
        page.get_by_role("tab", name="History").click()
        page.locator(".past", has_text="order it").click()
        expect(turns(page)).to_have_count(3, timeout=PATIENCE)


def test_the_timeline_has_requests_prompts_waits_and_retries(
    browser: Browser, folder: Path
) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "Clerk")
        write(page, "bake and order with retry")
        page.get_by_role("tab", name="Timeline").click()
        page.get_by_role("button", name="Approve", exact=True).click()
        seen(turns(page), "Message 1 was")
        seen(
            page.locator(".totals"), re.compile(r"2 requests · 20\d tokens in · 84 out · \$0.0024")
        )
        bars = page.locator(".bar-row")
        expect(bars).to_have_count(4)
        expect(bars.first.locator(".retry")).to_have_count(1)
        bars.first.press("Enter")
        about = page.locator(".about-bar")
        seen(about, re.compile("Attempt 1.*repeated after"))
        about.get_by_text("Prompt that was sent").click()
        seen(about, "You run a shop. Answer in Markdown.")
        seen(about, "3 tools")
        save_screenshot(page, "22_timeline")
        bars.last.press("Enter")
        seen(about, re.compile("First token.*after"))
        page.get_by_role("button", name=re.compile("^order")).last.click()
        seen(about, re.compile(r"Approval.*\d"))
        waited = page.locator(".bar-row", has_text=re.compile("^order")).locator(".wait")
        expect(waited).to_have_count(1)  # on a busy machine, other calls can wait for their start


PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg=="
)
FILES: list[Any] = [
    {"name": "chart.png", "mimeType": "image/png", "buffer": PICTURE},
    {"name": "bill.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7" + bytes(3_000)},
]
TRANSFER = """([name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type }));
  return data;
}"""


def transfer(page: Page, name: str, text: str) -> Any:
    """Return a file as it is dropped or pasted."""
    return page.evaluate_handle(TRANSFER, [name, "text/plain", text])


def drop(page: Page, name: str, text: str) -> None:
    page.locator(".chat").dispatch_event("drop", {"dataTransfer": transfer(page, name, text)})


def test_files_are_attached_sent_and_shown_again(browser: Browser, folder: Path) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "Clerk")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Attach files").press("Enter")
        chooser.value.set_files(FILES)
        expect(message(page)).to_be_focused()
        drop(page, "dropped.txt", "dropped")
        message(page).evaluate(
            "(field, data) => field.dispatchEvent(new ClipboardEvent('paste',"
            " { clipboardData: data, bubbles: true, cancelable: true }))",
            transfer(page, "pasted.txt", "pasted"),
        )
        attached = page.get_by_role("list", name="Attached files").get_by_role("listitem")
        expect(attached).to_have_text(
            ["chart.png70 bytes", "bill.pdf3 KiB", "dropped.txt7 bytes", "pasted.txt6 bytes"]
        )
        page.get_by_role("button", name="Remove dropped.txt").press("Enter")
        expect(attached).to_have_count(3)
        expect(message(page)).to_be_focused()
        drop(page, "huge.bin", "?" * (10 << 20))
        seen(page.get_by_role("alert"), "huge.bin (10.0 MiB) is too large: the files of a message")
        save_screenshot(page, "29_attached")
        assert violations(page) == []
        write(page, "look at these")
        sent = turns(page).get_by_role("list", name="Files of the message").get_by_role("listitem")
        expect(sent).to_have_text(["chart.png70 bytes", "bill.pdf3 KiB", "pasted.txt6 bytes"])
        expect(attached).to_have_count(0)
        seen(turns(page), "Message 1 was look at these.")
        page.reload()
        expect(sent).to_have_count(3, timeout=PATIENCE)
        picture = sent.first.locator("img")
        expect(picture).to_have_js_property("naturalWidth", 1, timeout=PATIENCE)
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download pasted.txt").click()
        assert saved.value.path().read_text() == "pasted"
        save_screenshot(page, "30_files")
        assert violations(page) == []
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".bar-row").first.click()
        page.get_by_text("Prompt that was sent").click()
        prompt = page.get_by_role("group", name="Message: user")
        seen(prompt, "[chart.png, image/png, 70 bytes]")
        expect(prompt).not_to_contain_text("iVBOR")
        page.get_by_role("tab", name="History").click()
        seen(page.locator(".past"), "look at these · chart.png · bill.pdf · pasted.txt")
        page.get_by_role("button", name=re.compile("^Actions for Clerk")).click()
        page.get_by_role("button", name="Edit and run").click()
        expect(attached).to_have_count(3, timeout=PATIENCE)
        expect(message(page)).to_have_value("look at these")


def test_a_link_opens_one_event_and_what_is_around_it(browser: Browser, folder: Path) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        choose(page, "Clerk")
        write(page, "bake and price")
        seen(turns(page), "Prices are without taxes.")
        expect(page.locator(".unseen[role=status]")).to_have_text("Clerk: done")
        tree = page.get_by_role("tree")
        bake = tree.get_by_role("treeitem", name=re.compile("^bake"))
        bake.focus()
        page.keyboard.press("c")
        expect(page.locator(".unseen[role=status]")).to_have_text("Link to the event copied")
        link = page.evaluate("navigator.clipboard.readText()")
        assert "&event=" in link
        assert page.url == link
        expect(bake.locator("> .row")).to_have_class(re.compile("chosen"))
        tree.get_by_role("treeitem").first.locator(".toggle").first.click()
        expect(bake).to_have_count(0)
        page.reload()
        expect(bake).to_be_focused(timeout=PATIENCE)
        expect(bake).to_be_in_viewport()
        save_screenshot(page, "31_linked_call")
        assert violations(page) == []
        tree.get_by_role("treeitem").first.focus()
        page.keyboard.press("j")
        said = tree.locator(".event").first
        expect(said).to_be_focused()
        page.keyboard.press("c")
        page.reload()
        expect(said).to_be_focused(timeout=PATIENCE)
        expect(said).to_have_attribute("aria-current", "true")
        seen(said, "bake and price")
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".bar-row").last.click()
        page.get_by_role("button", name="Copy link").click()
        link = page.evaluate("navigator.clipboard.readText()")
        assert "view=timeline" in link
        page.goto(link)
        bar = page.locator(".bar-row").last
        expect(bar).to_be_focused(timeout=PATIENCE)
        expect(bar).to_have_attribute("aria-expanded", "true")
        page.goto(re.sub(r"event=\d+&view=timeline", "event=99999", link))
        seen(page.locator("#side-panel"), "This run has no event 99999.")


def test_a_link_into_a_run_that_is_still_going_waits_for_its_event(
    browser: Browser, folder: Path
) -> None:
    source = (folder / "shop.py").read_text()
    (folder / "shop.py").write_text(source.replace("asyncio.sleep(0.1)", "asyncio.sleep(0.5)"))
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "Clerk")
        write(page, "bake now")
        bake = page.get_by_role("treeitem", name=re.compile("^bake"))
        bake.focus(timeout=PATIENCE)
        page.keyboard.press("c")
        linked = page.url
        page.locator(".turn-end").get_by_text("running").wait_for()
        page.goto(linked)
        expect(bake).to_be_focused(timeout=PATIENCE)
        seen(bake, "running")
        seen(turns(page), "Message 1 was bake now.")


def test_a_conversation_on_a_phone(browser: Browser, folder: Path) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url, PHONE) as page:
        choose(page, "Clerk")
        message(page).fill("order and price")
        page.get_by_role("button", name="Send").click()
        card = page.get_by_role("region", name="Approve order?")
        expect(card).to_be_visible(timeout=PATIENCE)
        card.get_by_role("button", name="Reject").click()
        seen(turns(page), "Prices are without taxes.")
        save_screenshot(page, "23_phone_chat")
        assert page.evaluate("document.documentElement.scrollWidth > innerWidth") is False
        turns(page).get_by_role("button", name=re.compile("^price")).click()
        expect(page.get_by_role("treeitem", name=re.compile("^price"))).to_be_visible()


def test_the_runs_of_another_program_appear_and_are_followed(
    browser: Browser, tmp_path: Path
) -> None:
    """The page needs no target for that."""
    place, gate = tmp_path / "runs.db", tmp_path / "gate"
    words = [sys.executable, "-c", PROGRAM, str(place), str(gate)]
    place.touch()
    with dev(tmp_path, "--store", str(place)) as url, opened(browser, url) as page:
        history = page.get_by_role("region", name="History")
        seen(history, "No runs yet")
        with subprocess.Popen(words, cwd=ROOT) as process:  # noqa: S603 - our own
            try:
                page.locator(".past", has_text="worker").click()
                seen(page.get_by_role("treeitem", name=re.compile("^work ")), "1 of 3")
            finally:
                gate.touch()
            seen(page.get_by_role("region", name="Result"), "done")
            assert process.wait(30) == 0
        page.get_by_role("tab", name="Timeline").click()
        seen(page.locator(".totals"), "2 requests")
        seen(history, re.compile("runs.db.*worker.*done"))
        expect(page.get_by_role("button", name="Delete all")).to_have_count(0)
        save_screenshot(page, "24_store")


def test_a_result_has_the_views_that_fit_it_and_two_runs_are_compared(
    browser: Browser, folder: Path
) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        seen(page.locator("#side-panel"), "Follow the run here")
        save_screenshot(page, "25_first_run")
        result = page.get_by_role("region", name="Result")
        for thing in ("roll", "loaf"):
            choose(page, "price")
            page.get_by_role("textbox", name="thing").fill(thing)
            page.keyboard.press("Control+Enter")
            seen(result, thing)
        page.get_by_role("tab", name="Table").click()
        expect(result.get_by_role("columnheader")).to_have_text(["thing", "price", "sizes"])
        expect(result.get_by_role("cell", name="[1,2]")).to_be_visible()
        save_screenshot(page, "26_table")
        page.get_by_role("tab", name="Tree").click()
        result.locator("summary").nth(1).click()
        result.locator("summary").nth(2).click()
        seen(result, re.compile(r"sizes: \[2\]\s*0: 1\s*1: 2"))
        page.get_by_role("tab", name="History").click()
        page.get_by_role("button", name=re.compile("^Actions for price")).last.click()
        page.get_by_role("button", name="Compare with the shown run").click()
        panel = page.locator("#side-panel")
        expect(panel.locator(".removed").first).to_have_text('-   "thing": "loaf"')
        expect(panel.locator(".added").first).to_have_text('+   "thing": "roll"')
        save_screenshot(page, "27_compare")


def test_one_call_is_cancelled_and_the_run_continues(browser: Browser, folder: Path) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        source = (folder / "shop.py").read_text()
        (folder / "shop.py").write_text(source.replace('{"number": 4}', '{"number": 400}'))
        seen(page.locator(".banners"), "Reloaded")
        choose(page, "Clerk")
        write(page, "bake now")
        page.get_by_role("button", name="Cancel bake").click()
        seen(page.get_by_role("treeitem", name=re.compile("^bake")), "cancelled")
        seen(turns(page), "Message 1 was bake now.")


def test_the_page_is_used_with_the_keyboard_and_survives_a_reload(
    browser: Browser, folder: Path
) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "bake")
        page.get_by_role("textbox", name="number").fill("7")
        page.reload()
        expect(page.get_by_role("textbox", name="number")).to_have_value("7")
        page.keyboard.press("F6")
        expect(page.get_by_role("region", name="Tools and agents")).to_be_focused()
        page.keyboard.press("F6")
        page.keyboard.press("F6")
        expect(page.get_by_role("region", name="Runs", exact=True)).to_be_focused()
        divider = page.get_by_role("separator", name="Width of the runs")
        divider.focus()
        before = page.locator(".pane.run").evaluate("pane => pane.offsetWidth")
        page.keyboard.press("ArrowLeft")
        expect(divider).to_have_attribute("aria-valuenow", str(before + 24))
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keys")
        seen(dialog, "Go to the next pane")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.keyboard.press("/")
        page.keyboard.type("clerk")
        expect(page.locator(".entry")).to_have_count(1)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(message(page)).to_be_focused()
        page.keyboard.type("not yet sent")
        page.reload()
        expect(message(page)).to_have_value("not yet sent")
        assert "agent=Clerk" in page.url


def test_instructions_are_changed_for_the_next_messages(browser: Browser, folder: Path) -> None:
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        choose(page, "Clerk")
        page.get_by_text("Instructions, model and tools").click()
        page.get_by_role("textbox", name="Instructions").fill("You run a bakery.")
        seen(page.locator(".settings"), "The next messages use these instructions")
        save_screenshot(page, "28_settings")
        assert violations(page) == []
        write(page, "hello")
        seen(turns(page), "Message 1 was hello.")
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".bar-row").first.click()
        page.get_by_text("Prompt that was sent").click()
        seen(page.locator(".about-bar"), "You run a bakery.")
        page.get_by_role("button", name="Reset").click()
        expect(page.get_by_role("textbox", name="Instructions")).to_have_value(
            "You run a shop. Answer in Markdown."
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(browser: Browser, folder: Path, scheme: str) -> None:
    found: dict[str, list[str]] = {}
    with dev(folder, "shop.py") as url, opened(browser, url) as page:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found["first run"] = violations(page)
        choose(page, "Clerk")
        found["new conversation"] = violations(page)
        write(page, "price and order with retry")
        expect(page.get_by_role("region", name="Approve order?")).to_be_visible(timeout=PATIENCE)
        found["approval"] = violations(page)
        page.get_by_role("button", name="Approve", exact=True).click()
        seen(turns(page), "Prices are without taxes.")
        expect(page.get_by_role("region", name="Result")).to_be_visible(timeout=PATIENCE)
        found["conversation"] = violations(page)
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".bar-row").first.click()
        page.get_by_text("Prompt that was sent").click()
        page.get_by_text("3 tools", exact=True).click()
        found["timeline"] = violations(page)
        page.locator(".bar-row", has_text="order").click()
        found["timeline of a call"] = violations(page)
        for thing in ("roll", "loaf"):
            choose(page, "price")
            page.get_by_role("textbox", name="thing").fill(thing)
            page.keyboard.press("Control+Enter")
            seen(page.get_by_role("region", name="Result"), thing)
        for tab in ("Table", "Tree"):
            page.get_by_role("tab", name=tab).click()
            found[tab] = violations(page)
        page.get_by_role("tab", name="History").click()
        page.get_by_role("button", name=re.compile("^Actions for price")).last.click()
        found["history"] = violations(page)
        page.get_by_role("button", name="Compare with the shown run").click()
        found["comparison"] = violations(page)
        page.get_by_role("button", name="Keys").click()
        found["keys"] = violations(page)
    store = folder / "runs.db"
    store.touch()
    with dev(folder, "--store", str(store)) as url, opened(browser, url) as page:
        found["store"] = violations(page)
    assert {state: faults for state, faults in found.items() if faults} == {}
