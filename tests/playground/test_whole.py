"""End-to-end: `agents-tools dev` in a process, and the page in a real browser."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.playground.real_page import (
    BAKERY,
    PATIENCE,
    PHONE,
    choose,
    dev,
    message,
    opened,
    result,
    save_screenshot,
    seen,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.external("chromium"),
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
]
expect: Any = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a target."""
    shutil.copy(BAKERY, tmp_path)
    return tmp_path


def test_from_the_list_to_the_form_to_the_fault_to_the_result(
    browser: Browser, folder: Path
) -> None:
    """These are the first steps of a new user."""
    with dev(folder) as url, opened(browser, url) as page:
        assert "token" not in page.url
        save_screenshot(page, "1_list")
        choose(page, "add_up")
        page.get_by_role("button", name="Set lines").or_(
            page.get_by_role("button", name="Add to lines")
        ).first.click()
        if page.get_by_label("thing", exact=True).count() == 0:
            page.get_by_role("button", name="Add to lines").click()
        page.get_by_label("discount", exact=True).fill("2")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        seen(page.locator(".verdict.bad").first, re.compile("problem"))
        seen(page.locator("[id='f-discount-fault']"), "less than 1")
        seen(page.locator("[id='f-lines/0/thing-fault']"), "missing")
        save_screenshot(page, "2_fault")
        page.get_by_label("discount", exact=True).fill("0.5")
        page.get_by_label("thing", exact=True).select_option(label="cake")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        seen(result(page), '"to_pay":12')
        save_screenshot(page, "3_result")
        page.get_by_role("tab", name="What the model sees").click()
        seen(page.locator("#edit"), "Anthropic")
        save_screenshot(page, "4_views")


def test_progress_is_live_and_a_run_can_be_cancelled_and_run_again(
    browser: Browser, folder: Path
) -> None:
    """A long call must show its progress."""
    with dev(folder) as url, opened(browser, url) as page:
        choose(page, "bake")
        page.get_by_label("thing", exact=True).select_option(label="roll")
        page.get_by_label("number", exact=True).fill("200")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        run = page.locator(".run").last
        seen(run, "heating the oven")
        expect(page.get_by_role("progressbar").first).to_be_visible(timeout=PATIENCE)
        seen(run, re.compile(r"\d+ of 200"))
        save_screenshot(page, "5_progress")
        page.get_by_role("button", name="Cancel", exact=True).click()
        seen(run, re.compile("cancelled", re.IGNORECASE))
        save_screenshot(page, "6_cancelled")
        page.get_by_label("number", exact=True).fill("2")
        page.get_by_label("pause", exact=True).fill("0.01")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        seen(result(page), "2 x roll, still warm")
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".bar-row").click()
        seen(page.locator("main"), "call_1")
        expect(page.locator("body")).not_to_contain_text("NaN")
        save_screenshot(page, "7_timeline")
        page.get_by_role("tab", name="History").click()
        expect(page.locator(".history > li")).to_have_count(2, timeout=PATIENCE)
        save_screenshot(page, "8_history")
        page.get_by_role("button", name=re.compile("Actions for bake")).first.click()
        page.get_by_role("button", name="Run again").first.click()
        seen(result(page), "2 x roll, still warm")
        page.get_by_role("tab", name="History").click()
        expect(page.locator(".history > li")).to_have_count(3, timeout=PATIENCE)


def test_a_destructive_tool_asks_and_a_call_that_needs_approval_waits(
    browser: Browser, folder: Path
) -> None:
    """A wrong click does no harm, and a person can change the arguments of a model."""
    with dev(folder) as url, opened(browser, url) as page:
        choose(page, "throw_away")
        page.get_by_label("thing", exact=True).fill("cake")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        dialog = page.get_by_role("dialog")
        seen(dialog, "Run throw_away?")
        save_screenshot(page, "9_confirm")
        dialog.get_by_role("button", name="Run throw_away").click()
        seen(result(page), "The cake is gone.")
        choose(page, "order_flour")
        page.get_by_label("sacks", exact=True).fill("3")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        card = page.get_by_role("region", name="Approve order_flour?")
        expect(card).to_be_visible(timeout=PATIENCE)
        save_screenshot(page, "10_approval")
        card.get_by_role("textbox", name="Arguments").fill('{"sacks": 4}')
        card.get_by_role("button", name="Approve with changes").click()
        seen(result(page), "4 sacks are on their way.")
        save_screenshot(page, "11_approved")


def test_an_agent_shows_its_calls(browser: Browser, folder: Path) -> None:
    """It shows the messages, the calls and their results."""
    with dev(folder) as url, opened(browser, url) as page:
        choose(page, "Baker")
        message(page).fill("bake 2 roll")
        page.get_by_role("button", name=re.compile("^Send")).click()
        seen(page.locator(".run").last, "bake")
        expect(result(page)).to_be_visible(timeout=PATIENCE)
        save_screenshot(page, "12_agent")


def test_saving_the_file_changes_the_page(browser: Browser, folder: Path) -> None:
    """It shows breaking changes, and the error when the file is broken."""
    path = folder / "bakery.py"
    source = path.read_text()
    with dev(folder) as url, opened(browser, url) as page:
        choose(page, "order_flour")
        path.write_text(
            source.replace("sacks: int", "bags: int").replace("sacks: How", "bags: How")
        )
        expect(page.get_by_label("bags", exact=True)).to_be_visible(timeout=PATIENCE)
        page.get_by_role("tab", name="What the model sees").click()
        seen(page.locator("#edit"), "parameter removed")
        save_screenshot(page, "13_diff")
        path.write_text(source + "\ndef broken(:\n")
        seen(page.locator(".banner.bad"), "invalid syntax")
        seen(page.locator(".banner.bad"), re.compile(r"bakery\.py:\d+"))
        save_screenshot(page, "14_broken")
        path.write_text(source)
        expect(page.locator(".banner.bad")).to_have_count(0, timeout=PATIENCE)
        page.get_by_role("tab", name="Arguments").click()
        expect(page.get_by_label("sacks", exact=True)).to_be_visible(timeout=PATIENCE)


def test_the_history_is_available_after_a_restart(browser: Browser, folder: Path) -> None:
    """The next server lists, replays, exports and reruns the runs."""
    with dev(folder) as url, opened(browser, url) as page:
        choose(page, "draw_cake")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        expect(result(page).get_by_role("img")).to_be_visible(timeout=PATIENCE)
        save_screenshot(page, "15_image")
    with dev(folder) as url, opened(browser, url) as page:
        page.get_by_role("tab", name="History").click()
        page.locator(".past").first.click()
        expect(result(page).get_by_role("img")).to_be_visible(timeout=PATIENCE)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as test").first.click()
        assert download.value.suggested_filename == "test_draw_cake.py"
        assert "call_tool_sync(draw_cake" in Path(download.value.path()).read_text()
        page.get_by_role("button", name="Run again").first.click()
        page.get_by_role("tab", name="History").click()
        expect(page.locator(".history > li")).to_have_count(2, timeout=PATIENCE)


def test_the_page_works_on_a_phone(browser: Browser, folder: Path) -> None:
    """It shows one pane at a time, and nothing is wider than the screen."""
    with dev(folder) as url, opened(browser, url, PHONE) as page:
        save_screenshot(page, "16_phone_list")
        choose(page, "bake")
        page.get_by_label("thing", exact=True).select_option(label="loaf")
        page.get_by_label("number", exact=True).fill("3")
        save_screenshot(page, "17_phone_form")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        seen(result(page), "3 x loaf, still warm")
        save_screenshot(page, "18_phone_run")
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert wide is False


def test_a_page_without_the_token_shows_what_to_do(browser: Browser, folder: Path) -> None:
    """This happens with an old bookmark, for example."""
    with dev(folder) as url, contextlib.ExitStack() as stack:
        context = browser.new_context()
        stack.callback(context.close)
        page = context.new_page()
        page.goto(url.partition("#")[0])
        seen(page.locator("body"), "This page needs its token")
        page.get_by_label("Token").fill(url.rpartition("=")[2])
        page.get_by_role("button", name="Open").click()
        seen(page.locator("h1"), "bakery.py")


FAILING = """
import asyncio
from agents_tools import NotifyStreamEvent, function_tool, streaming_tool


def look_up(key):
    return {"a": 1}[key]


@function_tool
def price(thing: str) -> int:
    \"\"\"Return a price.\"\"\"
    try:
        return look_up(thing)
    except KeyError as error:
        raise RuntimeError(f"no price for {thing}") from error


@streaming_tool
async def count(upto: int):
    \"\"\"Count.\"\"\"
    for number in range(upto):
        yield NotifyStreamEvent(f"number {number}")
        await asyncio.sleep(0.001)
    yield upto
"""


def test_the_traceback_of_a_failed_call_is_one_click_away(browser: Browser, tmp_path: Path) -> None:
    """The frames of the user have source, and a link for the editor."""
    (tmp_path / "failing.py").write_text(FAILING)
    with dev(tmp_path, "failing.py") as url, opened(browser, url) as page:
        choose(page, "price")
        page.get_by_role("textbox", name="thing").fill("tea")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        page.get_by_text("Traceback", exact=True).click()
        shown = page.locator(".traceback")
        seen(shown, "RuntimeError no price for tea")
        seen(shown, "KeyError 'tea'")
        expect(shown.locator(".source-line.here").first).to_have_text(
            re.compile("raise RuntimeError")
        )
        link = shown.get_by_role("link", name=re.compile("failing.py:")).first
        assert str(link.get_attribute("href")).startswith(f"vscode://file{tmp_path}/failing.py:")
        expect(shown).not_to_contain_text("function_source.py")
        save_screenshot(page, "traceback")


def test_a_growing_run_stays_in_view_until_a_person_scrolls(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    left = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    with dev(tmp_path, "failing.py") as url, opened(browser, url) as page:
        choose(page, "count")
        page.get_by_role("textbox", name="upto").or_(page.get_by_label("upto")).first.fill("4000")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        panel = page.locator("#side-panel")
        seen(panel, re.compile("number 1[0-9][0-9]"))
        assert panel.evaluate("e => e.scrollTop") > 0
        assert panel.evaluate(left) < 24
        panel.evaluate("e => { e.scrollTop = 40 }")
        before = panel.inner_text()
        expect(panel).not_to_have_text(before)
        assert panel.evaluate("e => e.scrollTop") == 40


def test_a_run_is_shown_again_after_a_reload_and_by_its_link(
    browser: Browser, tmp_path: Path
) -> None:
    """A run that continues is followed; a run that was deleted is reported."""
    (tmp_path / "failing.py").write_text(FAILING)
    with dev(tmp_path, "failing.py") as url, opened(browser, url) as page:
        choose(page, "count")
        page.get_by_role("textbox", name="upto").or_(page.get_by_label("upto")).first.fill("900")
        page.get_by_role("button", name=re.compile("^Run")).first.click()
        seen(page.locator("#side-panel"), "number 1")
        link = page.url
        assert re.search(r"[?&]run=[\w-]+$", link)
        page.reload()
        seen(page.locator("#side-panel"), "number 899")
        choose(page, "price")
        page.goto(link)
        seen(page.locator("#side-panel h2"), "count")
        expect(page.locator(".entry[aria-current=true]")).to_contain_text("count")
