"""Long results are stored aside and read with a handle."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agents_tools import (
    Agent,
    RunContextWrapper,
    Runner,
    ToolContext,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    UserError,
    function_tool,
)
from agents_tools.policies import offload, redact, truncate
from agents_tools.testing import ScriptedModel, tool_call

TEXT = "".join(f"line {number}: the quick brown fox\n" for number in range(1_000))
PNG = b"\x89PNG\r\n\x1a\n"


@function_tool
async def fetch(what: str = "text") -> Any:
    """Fetch something long."""
    if what == "blocks":
        return [ToolOutputText(TEXT), ToolOutputImage(data=PNG), ToolOutputText("the end")]
    if what == "data":
        return [{"number": number} for number in range(3_000)]
    if what == "result":
        return ToolResult(content=TEXT, structured={"lines": 1_000}, metadata={"mine": 1})
    return TEXT if what == "text" else what


def handle_in(output: Any) -> str:
    found = re.search(r"r_[0-9a-f]{12}", str(output))
    assert found is not None
    return found[0]


async def test_a_long_result_is_previewed_and_can_be_read_in_parts() -> None:
    aside = offload(5_000, preview=100)
    tool = aside(fetch)
    outcome = await tool.call(None, "{}")
    handle = handle_in(outcome.output)
    assert outcome.output == (
        f"{TEXT[:100]}\n[The result has {len(TEXT):,} characters; these are the first 100. Read "
        f"more with read_result(handle='{handle}', offset=100), or search it with "
        f"read_result(handle='{handle}', search=...).]"
    )
    assert outcome.value == TEXT
    assert outcome.metadata == {"agents_tools": {"offloaded": handle}}
    read, offset = TEXT[:100], 100
    while offset < len(TEXT):
        part = str(await aside.reader.invoke(handle=handle, offset=offset))
        body, _, note = part.rpartition("\n")
        read += body
        offset += len(body)
        assert note == (
            f"[{len(TEXT) - offset:,} more characters; continue with offset={offset}.]"
            if offset < len(TEXT)
            else "[This is the end of the result.]"
        )
    assert read == TEXT


ORDERS = {
    "total": 500,
    "orders": [
        {
            "id": number,
            "customer": {"name": f"Customer {number}", "tags": ["new"] if number % 2 else []},
            **({"note": "urgent"} if number == 400 else {}),
        }
        for number in range(500)
    ],
}


async def test_of_a_long_json_result_the_structure_is_shown_and_parts_are_read_by_path() -> None:
    aside = offload(2_000, preview=300)
    outcome = await aside(fetch).call(None, json.dumps({"what": json.dumps(ORDERS)}))
    handle = handle_in(outcome.output)
    extract, _, note = str(outcome.output).partition("\n")
    assert len(extract) <= 300
    assert json.loads(extract)["orders"][0] == ORDERS["orders"][0]  # type: ignore[index]
    size = len(json.dumps(ORDERS))
    assert note == (
        f"[The result has {size:,} characters of JSON, of which the above is an extract: "
        "{total: int, orders: 500 x {id: int, customer: {name: str, tags: list[str]}, note?: str}}. "
        f"Read a part with read_result(handle='{handle}', path=...), for example "
        f"path='orders[0:10]', or search it with read_result(handle='{handle}', search=...).]"
    )

    async def read(path: str, **more: Any) -> str:
        return str(await aside.reader.invoke(handle=handle, path=path, **more))

    end = "\n[This is the end of the result.]"
    assert await read("total") == f"500{end}"
    assert await read("orders[-1].customer.name") == f"Customer 499{end}"
    assert await read("orders[398:401].id") == f"[398,399,400]{end}"
    assert await read('["orders"][400]["note"]') == f"urgent{end}"
    assert (await read("orders[:].customer.name", search="customer 77")).startswith("offset ")
    assert "continue with offset=2000." in await read("orders")
    assert (await read("orders", offset=2_000)).startswith(
        json.dumps(ORDERS["orders"], separators=(",", ":"))[2_000:2_100]
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("orders[x]", "is not valid at '[x]': expected keys, indexes and slices such as"),
        ("orders[]", "is not valid at '[]'"),
        ("orders[-:]", "is not valid at '[-:]'"),
        ("items", "leads nowhere at 'items': the result is {total: int, orders: list of 500}."),
        ("orders[500]", "leads nowhere at '[500]': orders is 500 x {...}."),
        ("orders[0].id.x", "leads nowhere at '.x': orders[0].id is int."),
    ],
)
async def test_a_path_that_leads_nowhere_is_explained(path: str, message: str) -> None:
    aside = offload(2_000)
    outcome = await aside(fetch).call(None, json.dumps({"what": json.dumps(ORDERS)}))
    given = {"handle": handle_in(outcome.output), "path": path}
    answer = await aside.reader.call(None, json.dumps(given))
    assert message in str(answer.output)


async def test_the_structure_of_a_json_result_is_bounded() -> None:
    """Otherwise the note could be longer than the result."""
    value = {f"a long key {number}": number for number in range(30)}
    outcome = await offload(100, preview=0)(fetch).call(
        None, json.dumps({"what": json.dumps(value)})
    )
    structure = str(outcome.output).partition("extract: ")[2].partition(". Read a part")[0]
    assert (len(structure), structure[-1]) == (101, "…")
    assert "for example" not in str(outcome.output), "no key of it is a plain word"


async def test_a_text_has_no_paths() -> None:
    aside = offload(5_000)
    outcome = await aside(fetch).call(None, "{}")
    given = {"handle": handle_in(outcome.output), "path": "a"}
    answer = await aside.reader.call(None, json.dumps(given))
    assert "This result is not JSON: path= needs JSON. Use offset= and limit=, or search=." in str(
        answer.output
    )


async def test_a_short_result_is_unchanged() -> None:
    outcome = await offload(5_000)(fetch).call(None, '{"what": "short"}')
    assert (outcome.output, outcome.metadata) == ("short", None)


async def test_a_stored_result_can_be_searched() -> None:
    """The search text is never used as a regular expression."""
    aside = offload(5_000)
    handle = handle_in(await aside(fetch).on_invoke_tool(None, "{}"))
    found = str(await aside.reader.invoke(handle=handle, search="LINE 77:"))
    place = TEXT.index("line 77:")
    assert found.startswith(f"offset {place}: …")
    assert found.count("\n") == 0
    many = str(await aside.reader.invoke(handle=handle, search="fox"))
    assert len(many.splitlines()) == 21
    following = re.search(r"More occurrences from offset=(\d+)", many)
    assert following is not None
    more = await aside.reader.invoke(handle=handle, search="fox", offset=int(following[1]))
    assert f"offset {following[1]}:" in str(more)
    for word in ("(a+)+$", "[", "nowhere"):
        assert "does not occur in the result" in await aside.reader.invoke(
            handle=handle, search=word
        )


async def test_only_text_is_offloaded() -> None:
    """A model still sees the image."""
    aside = offload(5_000)
    outcome = await aside(fetch).call(None, '{"what": "blocks"}')
    text, image = outcome.output
    assert isinstance(text, ToolOutputText)
    assert isinstance(image, ToolOutputImage)
    whole = f"{TEXT}\n\nthe end"
    part = await aside.reader.invoke(handle=handle_in(text), offset=len(whole) - 7)
    assert part == "the end\n[This is the end of the result.]"


async def test_the_stored_text_is_the_output_for_the_model() -> None:
    """JSON for data; the application gets the object itself."""
    aside = offload(5_000)
    outcome = await aside(fetch).call(None, '{"what": "data"}')
    assert len(outcome.value) == 3_000
    part = await aside.reader.invoke(handle=handle_in(outcome.output), limit=20)
    assert part.startswith('[{"number":0},{"numb')
    outcome = await aside(fetch).call(None, '{"what": "result"}')
    assert outcome.metadata is not None
    assert outcome.metadata["mine"] == 1
    assert outcome.metadata["agents_tools"]["offloaded"] == handle_in(outcome.output)


async def test_a_handle_of_another_run_is_refused() -> None:
    """So are handles of other users outside a run, invented handles, and file paths."""
    aside = offload(5_000)
    tools = [aside(fetch), aside.reader]
    seen_handles: list[str] = []

    def read_it(request: Any) -> Any:
        seen_handles.append(handle_in(request.input[-1]))
        return tool_call("read_result", handle=seen_handles[0], limit=5)

    def last(request: Any) -> str:
        return str(request.input[-1].output)

    own = ScriptedModel([tool_call("fetch"), read_it, last])
    result = await Runner.run(Agent("Helper", tools=tools, model=own), "hi")
    assert result.final_output.startswith("line ")
    for handle in (seen_handles[0], "r_000000000000", "../../etc/passwd", ""):
        other = ScriptedModel([tool_call("read_result", handle=handle), last])
        result = await Runner.run(Agent("Helper", tools=tools, model=other), "hi")
        assert "it may have expired" in result.final_output
    anna, bob = object(), object()
    handle = handle_in(await aside(fetch).on_invoke_tool(RunContextWrapper(anna), "{}"))
    for person, status in ((anna, "ok"), (bob, "tool_error"), (None, "tool_error")):
        outcome = await aside.reader.call(RunContextWrapper(person), f'{{"handle": "{handle}"}}')
        assert outcome.status == status


async def test_an_inner_run_can_read_results_of_the_outer_run() -> None:
    """An agent used as a tool can be asked to read one."""
    aside = offload(5_000)

    def pass_on(request: Any) -> Any:
        return tool_call("helper", input=handle_in(request.input[-1]))

    def read_it(request: Any) -> Any:
        return tool_call("read_result", handle=handle_in(request.input[0]), limit=6)

    inner = ScriptedModel([read_it, lambda request: str(request.input[-1].output)])
    helper = Agent("Helper", tools=[aside.reader], model=inner).as_tool("helper", "Helps.")
    outer = ScriptedModel(
        [tool_call("fetch"), pass_on, lambda request: str(request.input[-1].output)]
    )
    agent = Agent("Outer", tools=[aside(fetch), helper], model=outer)
    assert (await Runner.run(agent, "hi")).final_output.startswith("line 0\n[")


async def test_stored_results_are_bounded_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is evicted first."""
    now = 0.0
    monkeypatch.setattr("agents_tools.policies._offload.time.monotonic", lambda: now)
    aside = offload(100, max_kept=250, expires=60)
    tool = aside(fetch)

    async def store(letter: str, size: int = 101) -> str:
        return handle_in(await tool.on_invoke_tool(None, f'{{"what": "{letter * size}"}}'))

    async def status(handle: str) -> str:
        return (await aside.reader.call(None, f'{{"handle": "{handle}"}}')).status

    first, second = await store("a"), await store("b")
    assert [await status(one) for one in (first, second)] == ["ok", "ok"]
    third = await store("c")
    assert [await status(one) for one in (first, second, third)] == ["tool_error", "ok", "ok"]
    now = 60.0
    assert [await status(one) for one in (second, third)] == ["tool_error"] * 2
    huge = str(await tool.on_invoke_tool(None, f'{{"what": "{"d" * 1_000}"}}'))
    assert "of which the first 250 are stored" in huge
    part = await aside.reader.invoke(handle=handle_in(huge), offset=200)
    assert part.startswith("d" * 50 + "\n")


async def test_invalid_read_requests_are_answered() -> None:
    """Models often pass wrong offsets."""
    aside = offload(5_000, reader_name="more")
    handle = handle_in(await aside(fetch).on_invoke_tool(None, "{}"))
    assert aside.reader.name == "more"
    assert aside.reader is aside.reader
    for arguments in ({"offset": -1}, {"limit": 0}):
        outcome = await aside.reader.call(None, json.dumps({"handle": handle, **arguments}))
        assert outcome.status == "tool_error"
    assert "there is nothing from" in await aside.reader.invoke(handle=handle, offset=10**6)
    part = str(await aside.reader.invoke(handle=handle, limit=10**6))
    assert len(part) < 5_200


async def test_redacted_text_is_not_stored() -> None:
    """In either order of the policies; a limit outside applies to the preview."""
    aside = offload(5_000)
    for tool in (aside(redact("fox")(fetch)), redact("fox")(aside(fetch))):
        handle = handle_in(await tool.on_invoke_tool(None, "{}"))
        assert "fox" not in str(await aside.reader.invoke(handle=handle))
    bounded = truncate(400)(offload(5_000, preview=50)(fetch))
    assert len(str(await bounded.on_invoke_tool(None, "{}"))) <= 400


@pytest.mark.parametrize(
    "options",
    [
        {"max_chars": 0},
        {"max_chars": 1.5},
        {"max_kept": 0},
        {"preview": 30_000},
        {"preview": 1.5},
        {"expires": 0},
        {"reader_name": "no name"},
    ],
)
def test_invalid_offload_options_are_refused(options: dict[str, Any]) -> None:
    """At construction."""
    with pytest.raises(UserError):
        offload(**options)


async def test_a_search_returns_the_right_offset_in_any_text() -> None:
    """Lowercase letters can be longer than uppercase ones."""
    aside = offload(5)
    text = f"İİ {'x' * 300} The END."
    handle = handle_in(await aside(fetch).on_invoke_tool(None, f'{{"what": "{text}"}}'))
    for search in ("the end", "THE END", "İ X", "."):
        found = str(await aside.reader.invoke(handle=handle, search=search))
        place = re.match(r"offset (\d+): …", found)
        assert place is not None
        start = int(place[1])
        assert text[start : start + len(search)].lower() == search.lower()


@pytest.mark.timeout(120)
async def test_every_search_is_fast() -> None:
    """The search text comes from the model, or from a page that it read."""
    aside = offload(100)

    @aside
    @function_tool
    async def load() -> str:
        return "a" * 5_000_000

    arguments = json.dumps({"handle": handle_in(await load.on_invoke_tool(None, "{}"))})
    for search in ("a" * 999 + "b", "A" * 500 + "b" + "a" * 499, "b"):
        given = json.dumps({**json.loads(arguments), "search": search})
        assert "does not occur in the result" in str((await aside.reader.call(None, given)).output)


async def test_the_storage_of_all_runs_is_bounded() -> None:
    """A server starts runs without end; the latest keep their results."""
    aside = offload(100, max_kept=1_000)
    tool, handles = aside(fetch), list[str]()
    for number in range(30):
        context = ToolContext(run_id=f"run {number}")
        handles.append(
            handle_in(await tool.on_invoke_tool(context, f'{{"what": "{"a" * 1_000}"}}'))
        )
    statuses: list[str] = []
    for number, handle in enumerate(handles):
        context = ToolContext(run_id=f"run {number}")
        statuses.append((await aside.reader.call(context, f'{{"handle": "{handle}"}}')).status)
    assert statuses == ["tool_error"] * 20 + ["ok"] * 10


async def test_handles_of_other_callers_are_not_listed() -> None:
    """Calls outside a run without a context can come from any caller."""
    aside = offload(100)
    handle = handle_in(await aside(fetch).on_invoke_tool(None, "{}"))
    outcome = await aside.reader.call(None, '{"handle": "r_0"}')
    assert outcome.status == "tool_error"
    assert handle not in str(outcome.output)


async def test_the_reader_returns_complete_parts_of_any_length() -> None:
    """The general output limit must not cut off the hint how to read on."""
    aside = offload(400_000)

    @aside
    @function_tool
    async def load() -> str:
        return "ab" * 500_000

    handle = handle_in(await load.on_invoke_tool(None, "{}"))
    part = str((await aside.reader.call(None, f'{{"handle": "{handle}"}}')).output)
    assert part.startswith(
        "ab" * 200_000 + "\n[600,000 more characters; continue with offset=400000"
    )
