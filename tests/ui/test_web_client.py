"""The client for web pages in a browser: the pages of the documentation, reloads, lost networks.

The tools of the agent wait for the test, so nothing depends on time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agents_tools
from tests.conformance.ui.install import HOME
from tests.programs import CHROMIUM
from tests.ui.web_site import PAGES, Site, open_site

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, BrowserContext, Page

sync_api = pytest.importorskip("playwright.sync_api")
expect: Any = sync_api.expect
CLIENT = Path(agents_tools.__file__).parent / "ui" / "client"
GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
MODULES = HOME / "web" / "node_modules"
COPILOTKIT = HOME / "copilotkit" / "node_modules"
PATIENCE = 30_000
CALLS = ["research", "scan", "wait", "order"]
FUNCTIONS = """<!doctype html><html lang="en"><title>Functions</title><p>0</p>
<script type="module">
import * as client from "/agent/client.js";
const endpoint = { url: "/agent" };
window.seen = [];
window.begin = async () => {
  const run = await client.startRun(endpoint, { input: "Prepare the order." });
  const tree = new client.EventTree();
  window.run = run.run_id;
  for await (const event of client.followRun(endpoint, run.run_id)) {
    tree.apply(event);
    window.seen.push(event.id);
    document.querySelector("p").textContent = tree.calls.find((call) => call.progress)?.progress.current ?? 0;
    if (tree.root.status === "interrupted") document.title = "interrupted";
  }
  document.title = "over";
};
</script>"""

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.external("chromium"),
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
]
needs_vite = pytest.mark.skipif(
    not MODULES.is_dir(), reason="Vite is not installed: python -m tests.conformance.ui.install web"
)
needs_copilotkit = pytest.mark.skipif(
    not COPILOTKIT.is_dir(),
    reason="CopilotKit is not installed: python -m tests.conformance.ui.install copilotkit",
)


def snippet(title: str, guide: str = "web-client") -> str:
    """Return a program of a guide, as a reader pastes it."""
    text = (GUIDES / f"{guide}.md").read_text()
    found = re.search(rf'```\w+ title="{re.escape(title)}"\n(.*?)\n```', text, re.DOTALL)
    assert found is not None, title
    return found[1] + "\n"


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Yield a browser without a profile."""
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def context(browser: Browser) -> Generator[BrowserContext]:
    """Yield tabs of one user; an exception in a page fails the test."""
    context = browser.new_context(viewport={"width": 900, "height": 700})
    context.set_default_timeout(PATIENCE)
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    try:
        yield context
        assert errors == []
    finally:
        context.close()


def pages() -> dict[str, str]:
    """Return the pages: that of the guide that needs no build step, and one with functions."""
    page = f'<!doctype html><html lang="en"><title>Shop</title>\n{snippet("index.html")}'
    return {"/": page, "/functions": FUNCTIONS}


@pytest.fixture
def site() -> Generator[Site]:
    """Yield the site."""
    with open_site(pages()) as opened:
        yield opened


@contextlib.contextmanager
def vite(folder: Path, site: Site, program: str, modules: Path = MODULES) -> Generator[str]:
    """Run Vite with a React program and the settings of the guide; yield the address of the page."""
    installed = folder / "node_modules"
    installed.mkdir()
    for entry in modules.iterdir():
        if not entry.name.startswith("."):
            (installed / entry.name).symlink_to(entry)
    # What `npm install` of the packed client leaves.
    shutil.copytree(CLIENT, installed / "@agents-tools" / "client")
    (folder / "main.jsx").write_text(program)
    config = snippet("vite.config.js").replace("http://127.0.0.1:8000", site.url(""))
    (folder / "vite.config.mjs").write_text(config)
    (folder / "index.html").write_text(
        '<!doctype html><html lang="en"><title>Shop</title><div id="root"></div>'
        '<script type="module" src="/main.jsx"></script>'
    )
    node = modules / ".bin" / "node"
    runtime = str(node) if node.exists() else shutil.which("node") or "node"
    command = [
        runtime,
        str(modules / "vite" / "bin" / "vite.js"),
        "--port",
        "0",
        "--host",
        "127.0.0.1",
    ]
    env = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(  # noqa: S603 - our own
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                    yield found[0]
                    return
            raise AssertionError("".join(lines))
        finally:
            process.kill()


def call(page: Page, name: str) -> Any:
    """Return the head of a call."""
    return page.locator(".agents-call > header", has=page.locator(f"b:text-is('{name}')"))


def lines(page: Page) -> list[str]:
    """Return the lines of the tool that reads pages."""
    return page.locator(".agents-line").all_inner_texts()


def read(first: int, last: int) -> list[str]:
    return [f"read page {page}" for page in range(first, last + 1)]


def follow_a_run(context: BrowserContext, site: Site, url: str) -> None:
    """Start one run, cancel a call, reload, approve in a second tab, and see the end in both."""
    page = context.new_page()
    page.goto(url)
    page.get_by_role("button", name="Read 3 pages").dblclick()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    expect(page.locator("ul ul .agents-call > header b")).to_have_text("scan")  # in the sub-agent
    page.get_by_role("button", name="Cancel wait").click()
    expect(call(page, "wait")).to_contain_text("cancelled")
    site.release(2)
    expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")

    page.reload()
    expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
    assert lines(page) == read(1, 3)
    site.release(PAGES)
    expect(page.get_by_role("status")).to_have_text("waits for you")

    second = context.new_page()
    second.goto(page.url)
    expect(second.locator(".agents-approval")).to_contain_text('"count": 3')
    second.get_by_role("button", name="Approve").click()
    for tab in (second, page):
        expect(tab.get_by_role("status")).to_have_text("done")
        expect(tab.locator(".agents-text").last).to_have_text("The flour comes tomorrow.")
        assert tab.locator(".agents-call > header b").all_inner_texts() == CALLS
        assert lines(tab) == read(1, PAGES)
        expect(call(tab, "order")).to_contain_text("done")
        expect(tab.locator(".agents-approval")).to_have_count(0)
    assert site.starts == 1


def test_a_page_without_a_build_step(context: BrowserContext, site: Site) -> None:
    follow_a_run(context, site, site.url("/"))


@needs_vite
@pytest.mark.parametrize("is_strict", [False, True])
def test_ten_lines_of_react_in_vite(
    context: BrowserContext, site: Site, tmp_path: Path, is_strict: bool
) -> None:
    """In strict mode, React mounts each component twice."""
    program = snippet("main.jsx")
    assert len(program.splitlines()) <= 10
    if is_strict:
        program = 'import { StrictMode } from "react";\n' + program.replace(
            "<App />", "<StrictMode><App /></StrictMode>"
        )
        assert "<StrictMode>" in program
    with vite(tmp_path, site, program) as url:
        follow_a_run(context, site, url)


def test_nothing_is_lost_or_repeated_when_the_network_is_lost(
    context: BrowserContext, site: Site
) -> None:
    page = context.new_page()
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    site.cut()
    site.release(2)  # the run continues
    expect(page.get_by_role("status")).to_contain_text("No connection to the server")
    site.restore()
    expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
    expect(page.get_by_role("status")).to_have_text("running")
    assert lines(page) == read(1, 3)
    site.cut()
    page.get_by_role("button", name="Cancel wait").click()  # repeated until it arrives
    expect(page.get_by_role("status")).to_contain_text("No connection to the server")
    site.restore()
    expect(call(page, "wait")).to_contain_text("cancelled")
    assert lines(page) == read(1, 3)


def test_another_server_continues_the_stream(context: BrowserContext, tmp_path: Path) -> None:
    """The first server drives the run; the page sees and controls it through the second."""
    with open_site(pages(), tmp_path / "runs.db") as site:
        page = context.new_page()
        page.goto(site.url("/"))
        page.get_by_role("button", name="Read 3 pages").click()
        expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
        site.switch()
        site.release(2)
        expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
        assert lines(page) == read(1, 3)
        page.get_by_role("button", name="Cancel wait").click()
        expect(call(page, "wait")).to_contain_text("cancelled")
        site.release(PAGES)
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status")).to_have_text("done")
        expect(page.locator(".agents-text").last).to_have_text("The flour comes tomorrow.")
        assert lines(page) == read(1, PAGES)
        assert page.locator(".agents-call > header b").all_inner_texts() == CALLS


def test_a_start_without_a_network_starts_one_run_later(
    context: BrowserContext, site: Site
) -> None:
    page = context.new_page()
    page.goto(site.url("/"))
    expect(page.get_by_role("button")).to_be_visible()
    page.evaluate("import('/agent/standalone.js')")  # the module has arrived
    site.cut()
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.get_by_role("status")).to_contain_text("No connection to the server")
    site.restore()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    assert site.starts == 1


def test_a_repeated_start_finds_the_run_of_the_first_try(
    context: BrowserContext, site: Site
) -> None:
    """The answer to the first request is lost, not the request."""
    page = context.new_page()
    lost: list[str] = []

    def lose_first_answer(route: Any) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().text())
        route.abort("connectionreset")

    page.route("**/agent/runs", lose_first_answer)
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    assert json.loads(lost[0])["run_id"] in page.url
    assert site.starts == 2  # the second was refused
    runs = page.evaluate(
        "fetch('/agent/runs/' + new URL(location).searchParams.get('run')).then(r => r.json())"
    )
    assert runs["status"] == "running"


def test_a_rejection_with_a_reason_reaches_the_model(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    site.release(PAGES)
    page.get_by_role("button", name="Cancel wait").click()
    page.get_by_label("Reason for a rejection").fill("Too much flour.")
    page.keyboard.press("Enter")  # decides nothing
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("status")).to_have_text("done")
    expect(call(page, "order")).to_contain_text("denied")
    order = page.locator(".agents-call", has=page.locator("b:text-is('order')"))
    expect(order.locator("details pre")).to_contain_text("Too much flour.")


def test_arguments_are_edited_with_the_keyboard(context: BrowserContext, site: Site) -> None:
    """A mistake is reported at the text, in the page or by the server, and decides nothing."""
    page = context.new_page()
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    site.release(PAGES)
    page.get_by_role("button", name="Cancel wait").click()
    page.get_by_role("button", name="Edit arguments").focus()
    page.keyboard.press("Enter")
    editor = page.get_by_label("Arguments: order")
    expect(editor).to_be_focused()
    expect(editor).to_have_value('{\n  "count": 3\n}')
    for text, problem in (
        ('{"count": 3', "Arguments: expected JSON."),
        ("[3]", "Arguments: expected a JSON object."),
        ('{"count": "many"}', "count"),
    ):
        editor.fill(text)
        page.keyboard.press("Tab")  # to the reason
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Approve")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(problem)
        expect(editor).to_have_accessible_description(re.compile(re.escape(problem)))
        expect(editor).to_have_attribute("aria-invalid", "true")
        expect(editor).to_be_focused()
        expect(editor).to_have_value(text)
    page.get_by_role("button", name="Discard changes").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".agents-approval pre")).to_contain_text('"count": 3')
    page.get_by_role("button", name="Edit arguments").click()
    editor.fill('{"count": 5}')
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_have_text("done")
    order = page.locator(".agents-call", has=page.locator("b:text-is('order')"))
    expect(order.locator("details pre")).to_contain_text("5 bags ordered")


def test_edited_arguments_are_shown_again_when_the_reason_comes_late(
    context: BrowserContext, site: Site
) -> None:
    """The state of a run can name a waiting call before the event with the reason has arrived."""
    wait = {"call_id": "c1", "path": ["c1"], "name": "order", "arguments": '{"count": 3}'}
    item = {"call_id": "c1", "name": "order", "arguments": '{"count": 3}'}
    asked = {"type": "run_item_stream_event", "name": "tool_approval_requested", "path": []}
    stop = {"type": "run_finished_event", "status": "interrupted", "path": []}
    first = [{**asked, "id": 0, "item": item}, {**stop, "id": 1}]
    again = [{**asked, "id": 2, "item": {**item, "error": "count: expected an integer"}}]
    state: dict[str, Any] = {
        "run_id": "r1",
        "status": "interrupted",
        "approvals": [wait],
        "last_event_id": 1,
    }
    streams = [first, [], [*again, {**stop, "id": 3}]]

    def answer(route: Any) -> None:
        request = route.request
        if request.url.endswith("/approvals"):
            route.fulfill(json={"status": "running", "approvals": []})
        elif "/events" in request.url:
            events = streams.pop(0) if streams else []
            frames = [f"id: r1:{one['id']}\ndata: {json.dumps(one)}\n\n" for one in events]
            status = 200 if events else 204
            route.fulfill(status=status, content_type="text/event-stream", body="".join(frames))
        else:
            route.fulfill(json=state)

    page = context.new_page()
    page.route(re.compile(r"/agent/runs"), answer)
    page.goto(site.url("/?run=r1"))
    page.get_by_role("button", name="Edit arguments").click()
    editor = page.get_by_label("Arguments: order")
    editor.fill('{"count": "many"}')
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_have_text("count: expected an integer")
    expect(editor).to_have_value('{"count": "many"}')


def test_a_run_is_cancelled(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.locator(".agents-progress")).to_be_visible()
    page.locator(".agents-run > header button").click()
    expect(page.get_by_role("status")).to_have_text("cancelled")
    expect(page.locator('.agents-call[data-status="running"]')).to_have_count(0)


def test_axe_finds_nothing(context: BrowserContext, site: Site) -> None:
    axe = pytest.importorskip("axe_playwright_python.base")
    page = context.new_page()
    page.goto(site.url("/"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.add_style_tag(content=":root { color-scheme: light dark; background: Canvas }")
        page.get_by_role("button", name="Read 3 pages").click()
        expect(page.locator(".agents-progress")).to_be_visible()
        assert violations(page, axe.AXE_SCRIPT) == []
        page.get_by_role("button", name="Cancel wait").click()
        site.release(PAGES)
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        page.locator("summary").first.click()
        assert violations(page, axe.AXE_SCRIPT) == []
        page.get_by_role("button", name="Edit arguments").click()
        page.get_by_label("Arguments: order").fill("[")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert violations(page, axe.AXE_SCRIPT) == []


def violations(page: Page, script: str) -> list[tuple[str, list[str]]]:
    """Return what axe finds, with the elements."""
    page.evaluate(script)
    found = page.evaluate("async () => (await axe.run('.agents-run')).violations")
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]


def test_an_unknown_run_in_the_address_is_reported(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto(site.url("/?run=none"))
    expect(page.get_by_role("alert")).to_contain_text("The run 'none' does not exist, or was lost")
    expect(page.get_by_role("status")).to_have_text("failed")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_run_that_its_server_has_lost_ends(context: BrowserContext, site: Site) -> None:
    """Without a store, a server that was restarted does not know the run."""
    page = context.new_page()
    page.goto(site.url("/"))
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
    gone = {"error": {"status": 404, "message": "The run does not exist."}}
    page.route("**/agent/runs/*/events*", lambda route: route.fulfill(status=404, json=gone))
    site.cut()
    expect(page.get_by_role("status")).to_contain_text("No connection to the server")
    site.restore()
    expect(page.get_by_role("alert")).to_have_text("The run does not exist.")
    expect(page.get_by_role("status")).to_have_text("failed")
    expect(call(page, "scan")).to_contain_text("lost")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


@pytest.mark.parametrize(
    ("url", "answer", "problem"),
    [
        ("/agnt", {"status": 404}, "/agnt/runs: expected an endpoint of agents-tools, got status"),
        (
            "/agent",
            {"status": 401, "json": {"detail": "Unauthorized"}},
            "got status 401 (Unauthorized). Check the options 'url' and 'headers', and the proxy.",
        ),
        ("/agent", {"status": 403, "json": {"detail": "The trial is over."}}, "The trial is over."),
        ("/agent", {"status": 500}, "got status 500."),
        ("/agnt", {"content_type": "text/html", "body": "<p>"}, "got a page (text/html)."),
        ("localhost:8000", {}, 'got "localhost:8000".'),
        (None, {}, "Option 'url': expected an address such as \"/agent\""),
    ],
)
def test_a_wrong_address_is_reported(
    context: BrowserContext, site: Site, url: str | None, answer: dict[str, Any], problem: str
) -> None:
    """The page names the address and the options to check, and does not try for ever."""
    html = site.pages["/"].replace('url: "/agent"', f"url: {json.dumps(url)}")
    site.pages["/"] = html
    page = context.new_page()
    page.goto(site.url("/"))
    page.route("**/runs", lambda route: route.fulfill(**answer))
    page.get_by_role("button", name="Read 3 pages").click()
    expect(page.get_by_role("alert")).to_contain_text(problem)
    if "content_type" in answer:  # a copied address asks for the events of the run
        page.route("**/events*", lambda route: route.fulfill(**answer))
        page.goto(site.url("/?run=r1"))
        expect(page.get_by_role("alert")).to_contain_text(problem)
        expect(page.get_by_role("status")).to_have_text("failed")


def test_the_console_says_what_to_check_when_no_server_answers(
    context: BrowserContext, site: Site
) -> None:
    """Browsers do not tell pages why a request has failed; the text comes once."""
    page = context.new_page()
    page.goto(site.url("/"))
    page.evaluate("import('/agent/standalone.js')")
    warnings: list[str] = []
    page.on("console", lambda one: warnings.append(one.text) if one.type == "warning" else None)
    for count in (1, 2):
        site.cut()
        page.get_by_role("button", name="Read 3 pages").click()
        expect(page.get_by_role("status")).to_contain_text("No connection to the server")
        with page.expect_event("requestfailed"):
            pass
        with page.expect_event("requestfailed"):
            pass
        site.restore()
        expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
        assert len(warnings) == count
    assert "/agent/runs: no answer" in warnings[0]
    assert "Check that the server is started" in warnings[0]
    assert f"allows {site.url('')}" in warnings[0]


def test_the_functions_yield_each_event_once(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto(site.url("/functions"))
    page.evaluate("void window.begin()")
    for count in range(1, PAGES):
        expect(page.locator("p")).to_have_text(str(count))
        site.cut()
        site.release()
        site.restore()
    expect(page.locator("p")).to_have_text(str(PAGES))
    page.evaluate(
        "fetch(`/agent/runs/${run}/calls/call_2/cancel`, {method: 'POST', body: '{}',"
        " headers: {'content-type': 'application/json'}})"
    )
    site.release()
    expect(page).to_have_title("over")
    seen = page.evaluate("seen")
    state = page.evaluate("fetch(`/agent/runs/${run}`).then((answer) => answer.json())")
    assert state["status"] == "interrupted"
    assert seen == sorted(set(seen))
    assert seen[-1] == state["last_event_id"]


# --- in the front ends of others


@needs_vite
def test_the_page_of_the_ai_sdk_guide(context: BrowserContext, tmp_path: Path) -> None:
    """A reload, a second tab or server and a lost network lose nothing and repeat nothing."""
    with open_site({}, tmp_path / "runs.db", protocol="vercel") as site:
        program = snippet("main.jsx", "vercel-ai-sdk").replace(
            "http://localhost:8000", site.url("")
        )
        with vite(tmp_path, site, program) as url:
            page = context.new_page()
            page.goto(url)
            start = page.get_by_role("button", name="Read 3 pages")
            expect(start).to_be_visible()
            # There is nothing to resume: in Chromium, an answer without content can have a body.
            module = "/node_modules/@agents-tools/client/ai-sdk.js"
            found = page.evaluate(
                "async ([module, url]) => (await (await import(module)).watchedFetch(url)).status",
                [module, site.url("/none/stream")],
            )
            assert found == 204
            expect(page.get_by_role("status")).to_have_text("ready")
            site.cut()
            start.click()
            expect(page.get_by_role("status")).to_contain_text("No connection to the server")
            site.restore()
            expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
            expect(page.locator("ul ul .agents-call > header b")).to_have_text("scan")
            site.cut()
            for _ in range(3):  # it tries again until it succeeds
                page.wait_for_event("requestfailed")
            site.switch()
            site.release(2)
            expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
            page.reload()
            second = context.new_page()
            second.goto(url)
            for tab in (page, second):
                expect(tab.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
            site.release(PAGES)
            for tab in (page, second):
                expect(tab.locator(".agents-approval")).to_contain_text('"count": 3')
            edit(page, '{"count": "many"}')
            expect(page.locator(".agents-line").last).to_contain_text("count")
            expect(page.locator(".agents-approval")).to_contain_text('"count": 3')
            site.cut()
            edit(page, '{"count": 5}')
            expect(page.get_by_role("status")).to_contain_text("No connection to the server")
            site.restore()  # the answer is sent again
            for tab in (page, second):
                expect(tab.get_by_text("The flour comes tomorrow.")).to_have_count(1)
                expect(tab.locator(".agents-approval")).to_have_count(0)
            order = page.locator(".agents-call", has=page.locator("b:text-is('order')"))
            expect(order.locator("details pre")).to_contain_text("5 bags ordered")
            page.reload()
            expect(page.get_by_text("The flour comes tomorrow.")).to_have_count(1)
            for tab in (page, second):
                names = tab.locator(".agents-call > header b").all_text_contents()
                assert [name for name in names if name != "scan"] == ["research", "order"]
            assert site.scans == 1


@needs_vite
def test_a_chat_that_was_answered_elsewhere_continues_when_its_page_is_visible(
    browser: Browser, context: BrowserContext, tmp_path: Path
) -> None:
    """While the question is open, the page keeps what the user has entered."""
    with open_site({}, tmp_path / "runs.db", protocol="vercel") as site:
        program = snippet("main.jsx", "vercel-ai-sdk").replace(
            "http://localhost:8000", site.url("")
        )
        with vite(tmp_path, site, program) as url, closing(browser.new_context()) as other:
            page, elsewhere = context.new_page(), other.new_page()
            page.goto(url)
            page.get_by_role("button", name="Read 3 pages").click()
            site.release(PAGES)
            expect(page.locator(".agents-approval")).to_be_visible()
            elsewhere.goto(url)
            page.get_by_role("button", name="Edit arguments").click()
            page.get_by_label("Arguments: order").fill("{")
            with page.expect_response("**/stream") as asked:
                page.evaluate(VISIBLE)
            assert asked.value.status == 204
            expect(page.get_by_label("Arguments: order")).to_have_value("{")
            elsewhere.get_by_role("button", name="Approve").click()
            expect(elsewhere.get_by_text("The flour comes tomorrow.")).to_have_count(1)
            expect(page.locator(".agents-approval")).to_be_visible()
            page.evaluate(VISIBLE)
            expect(page.get_by_text("The flour comes tomorrow.")).to_have_count(1)
            expect(page.locator(".agents-approval")).to_have_count(0)


VISIBLE = "document.dispatchEvent(new Event('visibilitychange'))"
"""What a browser does when its tab is shown again."""


def test_the_page_of_the_ai_sdk_guide_without_a_server(
    context: BrowserContext, tmp_path: Path
) -> None:
    """The page is not empty: it says that it tries again, and continues when the server is there."""
    with open_site({}, protocol="vercel") as site:
        program = snippet("main.jsx", "vercel-ai-sdk").replace(
            "http://localhost:8000", site.url("")
        )
        with vite(tmp_path, site, program) as url:
            site.cut()
            page = context.new_page()
            page.goto(url)
            expect(page.get_by_role("status")).to_contain_text("No connection to the server")
            site.restore()
            expect(page.get_by_role("status")).to_have_text("ready")


@needs_copilotkit
@pytest.mark.timeout(300)
def test_the_page_of_the_copilotkit_guide(context: BrowserContext, tmp_path: Path) -> None:
    """A reload, a second tab or server and a lost network lose nothing and repeat nothing."""
    with open_site({}, tmp_path / "runs.db", protocol="ag_ui") as site:
        program = snippet("main.jsx", "ag-ui").replace("http://localhost:8000", site.url(""))
        with vite(tmp_path, site, program, COPILOTKIT) as url:
            page = context.new_page()
            with page.expect_response("**/connect", timeout=4 * PATIENCE):  # an empty thread
                page.goto(url, timeout=4 * PATIENCE)  # Vite bundles 350 packages
            box = page.get_by_role("textbox", name="Type a message")
            expect(box).to_be_visible()
            site.cut()
            box.fill("Read 3 pages.")
            with page.expect_console_message(lambda one: "[agents-tools]" in one.text) as warning:
                box.press("Enter")
            assert "Check that the server is started" in warning.value.text
            expect(page.get_by_text("Read 3 pages.")).to_be_visible()
            site.restore()
            expect(page.locator(".agents-progress")).to_contain_text(f"1 of {PAGES} pages")
            expect(page.locator("ul ul .agents-call > header b")).to_have_text("scan")
            site.switch()
            site.release(2)
            expect(page.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
            page.reload()
            second = context.new_page()
            second.goto(url)
            for tab in (page, second):
                expect(tab.locator(".agents-progress")).to_contain_text(f"3 of {PAGES} pages")
            site.release(PAGES)
            for tab in (page, second):
                expect(tab.locator(".agents-approval")).to_contain_text('"count": 3')
            edit(page, '{"count": "many"}')
            expect(page.locator(".agents-approval [role=alert]")).to_contain_text("count")
            site.cut()
            edit(page, '{"count": 5}')
            site.restore()  # the answer is sent again
            answer = page.get_by_text("The flour comes tomorrow.")
            expect(answer).to_have_count(1)
            names = page.locator(".agents-call > header b").all_text_contents()
            assert names == ["research", "scan"]
            trees = page.locator(".agents-run")
            before = trees.all_inner_texts()
            assert f"{PAGES} of {PAGES} pages" in "".join(before)
            page.reload()
            expect(answer).to_have_count(1)
            expect(page.get_by_text("Read 3 pages.")).to_have_count(1)
            expect(trees).to_have_text(before, use_inner_text=True)
            assert site.scans == 1


@needs_copilotkit
@pytest.mark.timeout(300)
def test_a_message_that_is_sent_while_the_page_connects_to_the_thread_is_kept(
    context: BrowserContext, tmp_path: Path
) -> None:
    """The network is lost before the messages of the thread come; the run waits for them."""
    with open_site({}, tmp_path / "runs.db", protocol="ag_ui") as site:
        program = snippet("main.jsx", "ag-ui").replace("http://localhost:8000", site.url(""))
        program = program.replace("<Chat />", "<Chat /><Thanks />").replace(
            "useInterrupt }", "useAgent, useCopilotKit, useInterrupt }"
        )
        with vite(tmp_path, site, program + THANKS, COPILOTKIT) as url:
            page = context.new_page()
            page.goto(url, timeout=4 * PATIENCE)  # Vite bundles 350 packages
            box = page.get_by_role("textbox", name="Type a message")
            box.fill("Read 3 pages.")
            box.press("Enter")
            site.release(PAGES)
            page.get_by_role("button", name="Approve").click()
            expect(page.get_by_text("The flour comes tomorrow.")).to_be_visible()
            trees = page.locator(".agents-run").all_inner_texts()

            held: list[Any] = []
            page.route("**/connect", lambda route: held.append(route), times=1)  # noqa: PLW0108 - no builtin
            with page.expect_request(lambda one: one.url.endswith("/connect")):
                page.reload()
            page.get_by_role("button", name="Thank").click()
            site.cut()
            with page.expect_event("requestfailed"):
                held[0].abort("connectionreset")
            site.restore()
            for _ in ("live", "loaded again"):
                for text in (
                    "Read 3 pages.",
                    "The flour comes tomorrow.",
                    "Thanks!",
                    "You are welcome.",
                ):
                    expect(page.get_by_text(text)).to_have_count(1)
                expect(page.locator(".agents-run")).to_have_text(trees, use_inner_text=True)
                page.reload()


THANKS = """
function Thanks() {
  const { agent } = useAgent({ agentId: "reader" });
  const { copilotkit } = useCopilotKit();
  const onClick = () => {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "Thanks!" });
    void copilotkit.runAgent({ agent });
  };
  return <button onClick={onClick}>Thank</button>;
}
"""
"""A button that sends a message as programs do; the form of the chat waits by itself."""


def edit(page: Page, text: str) -> None:
    """Approve a call with other arguments. After a mistake, some front ends keep the form open."""
    editor = page.get_by_label("Arguments: order")
    expect(page.get_by_role("button", name="Edit arguments").or_(editor)).to_be_visible()
    if not editor.is_visible():
        page.get_by_role("button", name="Edit arguments").click()
    editor.fill(text)
    page.get_by_role("button", name="Approve").click()
