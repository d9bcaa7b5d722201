"""The view module of the page: an update gives the same DOM as a new rendering."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import CHROMIUM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api")

SOURCE = Path(__file__).parents[2] / "tools" / "playground" / "src" / "view.js"
pytestmark = [
    pytest.mark.external("chromium"),
    pytest.mark.skipif(not SOURCE.is_file(), reason="the sources of the page are not here"),
    pytest.mark.timeout(120),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Open an empty page that exposes the module."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.evaluate(
            """async (source) => {
              const url = "data:text/javascript," + encodeURIComponent(source);
              Object.assign(globalThis, await import(url));
              globalThis.drawn = () => new Promise((done) => setTimeout(done));
              globalThis.begin = (of) => {
                const place = document.createElement("div");
                document.body.replaceChildren(place);
                render(of, place);
                return place;
              };
            }""",
            SOURCE.read_text(),
        )
        yield page
        browser.close()


def evaluate(page: Page, script: str) -> Any:
    """Run the body of an async function in the page."""
    return page.evaluate(f"async () => {{ {script} }}")


def test_an_updated_page_equals_a_new_rendering(page: Page) -> None:
    """This holds whether nodes are added, removed, moved or replaced."""
    wrong = evaluate(
        page,
        """
        let seed = 7;
        const below = (most) => (seed = (seed * 48271) % 2147483647) % most;
        const Group = ({ children }) => children;
        const Nothing = () => null;
        const some = (depth) => Array.from({ length: below(5) }, () => any(depth - 1));
        const keyed = (depth) =>
          some(depth).map((one, index) => h("li", { key: (index * 7) % 5 }, one));
        const properties = () => ({
          class: "abc"[below(4)],
          hidden: below(2) === 1,
          "aria-pressed": below(2) === 1,
          title: [undefined, null, "", "words"][below(4)],
        });
        const any = (depth) => {
          if (depth <= 0) return ["text", "", 0, null, undefined, false, true, "more"][below(8)];
          const kinds = [
            () => h(["div", "p", "svg", "ul"][below(4)], properties(), ...some(depth)),
            () => h(Group, null, ...some(depth)),
            () => keyed(depth),
            () => some(depth),
            () => h(Nothing),
            () => h("input", { value: ["", "x", undefined][below(3)], checked: below(2) === 1 }),
          ];
          return kinds[below(kinds.length)]();
        };
        const shown = signal(any(4));
        const place = begin(h(() => [shown.value, h("hr")]));
        let wrong = 0;
        for (let round = 0; round < 1000; round++) {
          shown.value = any(5);
          await Promise.resolve();
          const anew = document.createElement("div");
          render([shown.value, h("hr")], anew);
          if (!place.isEqualNode(anew)) wrong += 1;
        }
        return wrong;
        """,
    )
    assert wrong == 0


def test_unchanged_nodes_are_reused_and_keep_the_focus(page: Page) -> None:
    """A user who types into a field must not lose the focus because of another change."""
    assert evaluate(
        page,
        """
        const keys = signal(["b"]);
        const Field = ({ name }) => h("input", { id: name });
        const place = begin(h(() => keys.value.map((key) => h(Field, { key, name: key }))));
        const field = place.querySelector("#b");
        field.focus();
        keys.value = ["a", "b", "c"];
        await drawn();
        const order = () => [...place.children].map((one) => one.id).join("");
        const first = order();
        keys.value = ["b", "c"];
        await drawn();
        return [first, order(), document.activeElement === field];
        """,
    ) == ["abc", "bc", True]


def test_only_the_affected_component_is_rendered_again(page: Page) -> None:
    """Only components that read a value are rendered when it is set, once per batch."""
    assert evaluate(
        page,
        """
        const count = signal(0);
        const draws = { outer: 0, inner: 0 };
        const Inner = () => {
          draws.inner += 1;
          return Array.from({ length: count.value }, (_, index) => h("i", null, index));
        };
        const Outer = () => (draws.outer++, [h("a"), h(Inner), h("b")]);
        const place = begin(h(Outer));
        count.value = 1;
        count.value = 2;
        await drawn();
        return [place.innerHTML, draws.outer, draws.inner];
        """,
    ) == ["<a></a><i>0</i><i>1</i><b></b>", 1, 2]


def test_a_removed_element_gets_one_callback_and_is_not_rendered_again(page: Page) -> None:
    """A component that its parent removes is not rendered again."""
    assert evaluate(
        page,
        """
        const one = signal({ name: "x" });
        const said = [];
        const ref = (dom) => {
          said.push(dom.isConnected);
          return () => said.push("gone");
        };
        const Inner = () => h("p", { ref }, one.value.name);
        const place = begin(h(() => one.value && h(Inner)));
        one.value = { name: "y" };
        await drawn();
        const text = place.textContent;
        one.value = null;
        await drawn();
        one.value = null;
        await drawn();
        return [text, place.innerHTML, said];
        """,
    ) == ["y", "", [True, "gone"]]


def test_a_failing_component_does_not_stop_the_others(page: Page) -> None:
    """The failure is logged to the console; the other components are rendered."""
    assert (
        evaluate(
            page,
            """
        const value = signal(0);
        addEventListener("error", (event) => event.preventDefault());
        const Bad = () => {
          if (value.value === 1) throw new Error("no");
          return "fine";
        };
        const place = begin(h("div", null, h(Bad), h(() => h("b", null, value.value))));
        value.value = 1;
        await drawn();
        value.value = 2;
        await drawn();
        return place.textContent;
        """,
        )
        == "fine2"
    )
