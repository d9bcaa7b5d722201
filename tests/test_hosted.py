"""Hosted tools: what is sent to the Responses API, and what runs on this machine."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import Any

import pytest
from anthropic.types import ToolUnionParam
from inline_snapshot import snapshot
from openai.types.responses import (
    FileSearchToolParam,
    ResponseIncludable,
    ToolParam,
    WebSearchPreviewToolParam,
    WebSearchToolParam,
)
from pydantic import TypeAdapter
from pydantic_ai.native_tools import AbstractNativeTool

from agents_tools import (
    Agent,
    CodeInterpreterTool,
    ComputerTool,
    Decision,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    RunConfig,
    Runner,
    ToolCallItem,
    ToolCallOutputItem,
    ToolOutputImage,
    UserError,
    WebSearchTool,
    function_tool,
)
from agents_tools.agents import (
    HostedTool,
    MCPApprovalRequest,
    SafetyCheck,
    ShellRequest,
    WebFetchTool,
    load_model,
)
from agents_tools.testing import ScriptedModel, call_tool

MCP = {"server_label": "git", "server_url": "http://localhost/mcp"}
PNG = b"\x89PNG\r\n\x1a\n"


class Screen:
    """A computer that records the actions on it."""

    environment = "browser"
    dimensions = (1024, 768)

    def __init__(self) -> None:
        self.done: list[Any] = []

    async def screenshot(self) -> str:
        return base64.b64encode(PNG).decode()

    def click(self, x: int, y: int, button: str) -> None:
        self.done.append(("click", x, y, button))

    async def type(self, text: str) -> None:
        self.done.append(("type", text))

    def drag(self, path: list[tuple[int, int]]) -> None:
        self.done.append(("drag", path))


def _screen(**facts: Any) -> Screen:
    screen = Screen()
    vars(screen).update(facts)
    return screen


def _shell(request: ShellRequest) -> str:
    return " ".join(request.command)


EVERY = [
    WebSearchTool(),
    WebSearchTool(
        user_location={"type": "approximate", "city": "San Francisco"},
        search_context_size="low",
        filters={"allowed_domains": ["example.org"]},
    ),
    WebSearchTool(preview=True, search_content_types=("text", "image")),
    WebSearchTool(external_web_access=False),
    FileSearchTool(max_num_results=3, vector_store_ids=["VECTOR_STORE_ID"]),
    ComputerTool(Screen()),
    ComputerTool(Screen(), preview=False),
    CodeInterpreterTool(
        tool_config={"type": "code_interpreter", "container": {"type": "auto"}},
    ),
    HostedMCPTool(
        tool_config={"type": "mcp", "server_label": "git", "server_url": "http://localhost/mcp"},
    ),
    ImageGenerationTool(tool_config={"type": "image_generation", "quality": "low"}),
    LocalShellTool(executor=_shell),
]


@pytest.mark.requirement("A2", "A3", "A4", "A5", "A6", "A7", "A8")
def test_each_hosted_tool_is_exported_in_the_form_of_the_responses_api() -> None:
    """The types of the official client must accept it."""
    adapter: TypeAdapter[Any] = TypeAdapter(ToolParam)
    for tool in EVERY:
        adapter.validate_python(tool.to_responses(), strict=True)
    assert [tool.to_responses() for tool in EVERY] == snapshot(
        [
            {"type": "web_search"},
            {
                "type": "web_search",
                "user_location": {"type": "approximate", "city": "San Francisco"},
                "search_context_size": "low",
                "filters": {"allowed_domains": ["example.org"]},
            },
            {"type": "web_search_preview", "search_content_types": ["text", "image"]},
            {"type": "web_search", "external_web_access": False},
            {"type": "file_search", "vector_store_ids": ["VECTOR_STORE_ID"], "max_num_results": 3},
            {
                "type": "computer_use_preview",
                "environment": "browser",
                "display_width": 1024,
                "display_height": 768,
            },
            {"type": "computer"},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "mcp", "server_label": "git", "server_url": "http://localhost/mcp"},
            {"type": "image_generation", "quality": "low"},
            {"type": "local_shell"},
        ]
    )


DOMAINS = {"allowed_domains": ["example.org"]}
ELSEWHERE = [
    WebSearchTool(),
    WebSearchTool(user_location={"city": "Lisbon", "country": "PT"}, filters=DOMAINS, max_uses=2),
    WebFetchTool(),
    WebFetchTool(
        allowed_domains=("example.org",), max_uses=1, max_content_tokens=1_000, citations=True
    ),
    CodeInterpreterTool(),
]


def test_each_hosted_tool_of_anthropic_is_exported_in_the_form_of_the_messages_api() -> None:
    """The types of the official client must accept it."""
    adapter: TypeAdapter[Any] = TypeAdapter(ToolUnionParam)
    definitions = [tool.to_anthropic() for tool in ELSEWHERE]
    for definition in definitions:
        adapter.validate_python(definition, extra="forbid")
    assert definitions == snapshot(
        [
            {"type": "web_search_20250305", "name": "web_search"},
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "max_uses": 2,
                "user_location": {"type": "approximate", "city": "Lisbon", "country": "PT"},
                "allowed_domains": ["example.org"],
            },
            {"type": "web_fetch_20250910", "name": "web_fetch"},
            {
                "type": "web_fetch_20250910",
                "name": "web_fetch",
                "allowed_domains": ["example.org"],
                "max_uses": 1,
                "max_content_tokens": 1000,
                "citations": {"enabled": True},
            },
            {"type": "code_execution_20250825", "name": "code_execution"},
        ]
    )


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        (WebSearchTool, "web_search_20260318"),
        (WebFetchTool, "web_fetch_20260318"),
        (CodeInterpreterTool, "code_execution_20260521"),
    ],
)
def test_metadata_selects_another_version_of_a_tool_of_anthropic(kind: Any, version: str) -> None:
    """Newer versions only work with newer models, so that the application has to choose them."""
    options = {"anthropic": {"type": version, "allowed_callers": ["direct"]}}
    definition = kind(metadata=options).to_anthropic()
    TypeAdapter[Any](ToolUnionParam).validate_python(definition, extra="forbid")
    assert definition == {
        "type": version,
        "name": version.rpartition("_")[0],
        "allowed_callers": ["direct"],
    }


def test_each_hosted_tool_of_other_providers_is_a_native_tool_of_pydantic_ai() -> None:
    """Pydantic AI ignores no option that it knows, and refuses a definition that it does not."""
    tools = [*ELSEWHERE, FileSearchTool(["fileSearchStores/a"])]
    definitions = [tool.to_pydantic_ai() for tool in tools]
    native = [TypeAdapter[Any](AbstractNativeTool).validate_python(one) for one in definitions]
    assert [type(tool).__name__ for tool in native] == [
        "WebSearchTool",
        "WebSearchTool",
        "WebFetchTool",
        "WebFetchTool",
        "CodeExecutionTool",
        "FileSearchTool",
    ]
    assert definitions == snapshot(
        [
            {"kind": "web_search"},
            {
                "kind": "web_search",
                "user_location": {"city": "Lisbon", "country": "PT"},
                "max_uses": 2,
                "allowed_domains": ["example.org"],
            },
            {"kind": "web_fetch"},
            {
                "kind": "web_fetch",
                "allowed_domains": ["example.org"],
                "max_uses": 1,
                "provider_settings": {
                    "anthropic": {"max_content_tokens": 1000, "enable_citations": True}
                },
            },
            {"kind": "code_execution"},
            {"kind": "file_search", "file_store_ids": ["fileSearchStores/a"]},
        ]
    )


@pytest.mark.parametrize(
    ("tool", "method", "message"),
    [
        (WebSearchTool(max_uses=1), "to_responses", r"WebSearchTool\(max_uses=.*of OpenAI"),
        (WebSearchTool(search_context_size="low"), "to_anthropic", "search_context_size=.*Anthro"),
        (WebSearchTool(external_web_access=False), "to_anthropic", "external_web_access=.*Anthro"),
        (WebSearchTool(preview=True), "to_pydantic_ai", "preview=.*of Pydantic AI"),
        (WebSearchTool(filters={"x": 1}), "to_anthropic", "key 'x'.*allowed_domains"),
        (CodeInterpreterTool({"container": "cntr_1"}), "to_anthropic", "a container of OpenAI"),
        (FileSearchTool(["a"], max_num_results=1), "to_pydantic_ai", "max_num_results="),
    ],
)
def test_an_option_that_a_provider_does_not_have_is_refused(
    tool: Any, method: str, message: str
) -> None:
    """A filter that is dropped silently could let the model read what it must not."""
    with pytest.raises(UserError, match=message):
        getattr(tool, method)()


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: WebSearchTool(max_uses=0), "max_uses=.*positive number, got 0"),
        (lambda: WebFetchTool(allowed_domains="a.org"), "allowed_domains=.*a list of domains"),
        (lambda: WebSearchTool(metadata=3), "metadata=.*mapping"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_an_invalid_option_of_a_web_tool_is_refused_at_its_declaration(
    create: Any, message: str
) -> None:
    """The provider would only refuse it during a run."""
    with pytest.raises(UserError, match=message):
        create()


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("tool", "model", "choice"),
    [
        (WebSearchTool(), "openai-chat/gpt-5", "'openai/…' or 'anthropic/…' or 'pydantic-ai/…'"),
        (WebFetchTool(), "openai/gpt-5", "'anthropic/…' or 'pydantic-ai/…'"),
        (ImageGenerationTool(), "anthropic/claude-sonnet-5", "'openai/…'"),
        (HostedMCPTool(MCP), "pydantic-ai/google:gemini-3-pro", "'openai/…'"),
        (LocalShellTool(_shell), "local/rules", "'openai/…'"),
    ],
)
async def test_a_hosted_tool_with_a_wrong_model_names_the_models_that_have_it(
    tool: HostedTool, model: str, choice: str
) -> None:
    """The user learns which model to choose, before anything is sent."""
    prefix, _, name = model.partition("/")
    options = {} if prefix in {"local", "pydantic-ai"} else {"api_key": "sk-none"}
    agent = Agent("a", tools=[tool], model=load_model(model, **options))
    shown = model if prefix == "local" else name
    with pytest.raises(UserError) as caught:
        await Runner.run(agent, "Hi")
    assert str(caught.value) == (
        f"Tool {tool.name!r} ({type(tool).__name__}) runs at its provider, and model {shown!r} does "
        f"not have it. Choose a model named {choice}, or remove the tool."
    )


def test_hosted_tools_have_all_options_of_the_responses_api() -> None:
    """Otherwise users would have to fall back to raw dictionaries."""
    for record, param in (
        (WebSearchTool, WebSearchToolParam),
        (WebSearchTool, WebSearchPreviewToolParam),
        (FileSearchTool, FileSearchToolParam),
    ):
        options = {field.name for field in fields(record)}
        assert set(param.__annotations__) - {"type"} <= options


def test_a_hosted_tool_copies_its_configuration_and_hides_keys() -> None:
    """A later change of the dictionary, or a log line, must not reach or show a key."""
    config = {**MCP, "authorization": "SESAME", "headers": {"X-Key": "SESAME"}}
    tool = HostedMCPTool(config)
    config["server_label"] = "other"
    tool.to_responses()["headers"]["X-Key"] = "changed"
    assert tool.to_responses()["server_label"] == tool.name == "git"
    assert tool.to_responses()["headers"] == {"X-Key": "SESAME"}
    assert repr(tool) == "HostedMCPTool('git')"


def test_search_results_are_requested_if_wanted() -> None:
    """The provider omits them unless the request includes them."""
    assert FileSearchTool(["a"]).include == ()
    wanted = FileSearchTool(["a"], include_search_results=True)
    assert wanted.include == ("file_search_call.results",)
    adapter: TypeAdapter[Any] = TypeAdapter(list[ResponseIncludable])
    adapter.validate_python(list(wanted.include))


@pytest.mark.parametrize(
    ("make", "expected_text"),
    [
        (lambda: FileSearchTool([]), "at least one vector store"),
        (lambda: FileSearchTool("store"), "list of the ids"),
        (lambda: FileSearchTool(["a"], max_num_results=51), "1 to 50"),
        (lambda: FileSearchTool(["a"], max_num_results="3"), "got '3'"),  # type: ignore[arg-type]
        (lambda: FileSearchTool(["a"], filters="x"), "FileSearchTool.filters"),  # type: ignore[arg-type]
        (lambda: WebSearchTool("Paris"), "WebSearchTool.user_location"),  # type: ignore[arg-type]
        (lambda: WebSearchTool(search_context_size="huge"), "got 'huge'"),  # type: ignore[arg-type]
        (lambda: WebSearchTool(filters={}, preview=True), "an option of 'web_search'"),
        (lambda: WebSearchTool(search_content_types=["text"]), "Set preview=True"),
        (lambda: HostedMCPTool({**MCP, "server_label": 5}), "expected a string"),
        (lambda: HostedMCPTool(MCP, on_approval_request=True), "HostedMCPTool.on_approval"),  # type: ignore[arg-type]
        (lambda: ComputerTool(Screen), "got the class Screen"),
        (lambda: ComputerTool(Screen(), on_safety_check="yes"), "ComputerTool.on_safety"),  # type: ignore[arg-type]
        (lambda: ComputerTool(_screen(environment="mars")).to_responses(), "got 'mars'"),
        (lambda: ComputerTool(_screen(dimensions=(1, 2, 3))).to_responses(), "width and height"),
        (lambda: CodeInterpreterTool({"type": "code_interpreter"}), "needs 'container'"),
        (lambda: CodeInterpreterTool({"type": "mcp", "container": "c"}), "'code_interpreter'"),
        (lambda: HostedMCPTool({"server_url": "http://localhost"}), "needs 'server_label'"),
        (lambda: HostedMCPTool({"server_label": "git"}), "names no server"),
        (lambda: ImageGenerationTool("big"), "is not a mapping"),  # type: ignore[arg-type]
        (lambda: LocalShellTool("bash"), "expected a function"),  # type: ignore[arg-type]
        (lambda: ComputerTool(object()), "has no environment"),
    ],
)
def test_an_invalid_configuration_is_refused_at_construction(make: Any, expected_text: str) -> None:
    """Not only in an answer of the provider."""
    with pytest.raises(UserError, match=expected_text):
        make()


@pytest.mark.requirement("A3")
def test_a_missing_vector_store_is_an_error() -> None:
    """Without stores there is nothing to search, so the argument has no default."""
    with pytest.raises(TypeError, match="vector_store_ids"):
        FileSearchTool()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


async def _answer(tool: HostedTool, call: ToolCallItem, **config: Any) -> Any:
    model = ScriptedModel([call, "done"])
    agent = Agent("Driver", tools=[tool], model=model)
    return await Runner.run(agent, "go", run_config=RunConfig(**config))


def _outputs(result: Any) -> list[ToolCallOutputItem]:
    return [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]


@function_tool
def look(place: str) -> str:
    """Look at a place."""
    return place


@pytest.mark.requirement("A1", "A2")
async def test_an_agent_accepts_tools_of_all_kinds() -> None:
    """Hosted tools, functions and agents share one list, and can be distinguished in it."""
    helper = Agent("Helper", model=ScriptedModel([]))
    model = ScriptedModel(["done"])
    agent = Agent("Driver", tools=[WebSearchTool(), look, helper.as_tool()], model=model)
    await Runner.run(agent, "go")
    kinds = {
        name: "hosted" if isinstance(tool, HostedTool) else tool.origin.kind
        for name, tool in agent.tools_map.items()
    }
    assert kinds == {"web_search": "hosted", "look": "function", "helper": "agent"}
    assert [isinstance(tool, FunctionTool) for tool in agent.tools] == [False, True, True]
    assert [tool.name for tool in model.requests[0].tools] == list(kinds)


@pytest.mark.requirement("A8")
async def test_a_shell_command_reaches_the_executor_and_its_output_returns() -> None:
    """The shell is local: only the function of the application runs anything."""
    asked: list[ShellRequest] = []

    async def run(request: ShellRequest) -> str:
        asked.append(request)
        return "hello"

    call = ToolCallItem(
        call_id="c1",
        name="local_shell",
        kind="local_shell",
        arguments='{"type":"exec","command":["echo","hello"],"env":{"A":"1"},"timeout_ms":5}',
    )
    result = await _answer(LocalShellTool(executor=run), call)
    (output,) = _outputs(result)
    assert (output.output, output.kind, output.status) == ("hello", "local_shell", "ok")
    assert (asked[0].command, asked[0].env, asked[0].timeout_ms) == (
        ["echo", "hello"],
        {"A": "1"},
        5,
    )


async def test_an_executor_that_raises_is_reported_to_the_model() -> None:
    """A shell is a tool like any other: its exception must not end the run."""

    def run(request: ShellRequest) -> str:
        raise PermissionError("not here")

    call = ToolCallItem(
        call_id="c1", name="local_shell", kind="local_shell", arguments='{"command":["rm"]}'
    )
    (output,) = _outputs(await _answer(LocalShellTool(executor=run), call))
    assert output.status == "tool_error"
    assert "PermissionError: not here" in str(output.output)


@pytest.mark.requirement("A4")
async def test_a_computer_executes_actions_and_returns_screenshots() -> None:
    """Each action is answered with a screenshot."""
    screen = Screen()
    call = ToolCallItem(
        call_id="c1",
        name="computer_use_preview",
        kind="computer",
        arguments=(
            '{"actions":[{"type":"click","x":1,"y":2,"button":"left"},'
            '{"type":"type","text":"hi"},'
            '{"type":"drag","path":[{"x":1,"y":2},{"x":3,"y":4}]}]}'
        ),
    )
    (output,) = _outputs(await _answer(ComputerTool(screen), call))
    assert screen.done == [("click", 1, 2, "left"), ("type", "hi"), ("drag", [(1, 2), (3, 4)])]
    (image,) = output.output
    assert isinstance(image, ToolOutputImage)
    assert (image.data, image.mime_type) == (PNG, "image/png")


@pytest.mark.parametrize(
    ("action", "expected_text"),
    [
        ('{"type":"click","y":2,"button":"left"}', "x: expected an integer"),
        ('{"type":"click","x":true,"y":2}', "x: expected an integer"),
        ('{"type":"type"}', "text: expected a string"),
        ('{"type":"drag","path":[{"x":1}]}', "path: expected points"),
        ('{"actions":[{"type":"click","x":1,"y":2},3]}', "actions: expected a list of objects"),
        ('{"actions":[{"type":"click","x":1,"y":2},{"type":"type"}]}', "text: expected a string"),
    ],
)
async def test_an_incomplete_action_is_not_executed(action: str, expected_text: str) -> None:
    """A missing number must not shift the others, nor leave a batch half done."""
    screen = Screen()
    called = await call_tool(ComputerTool(screen).local, action)
    assert (called.status, screen.done) == ("invalid_args", [])
    assert expected_text in str(called.output)


async def test_modifier_keys_are_pressed_if_the_computer_supports_them() -> None:
    """A click without its modifier key is another action, so it must not happen."""
    held: list[Any] = []

    class Keyboard(Screen):
        async def move(self, x: int, y: int, keys: list[str] | None = None) -> None:
            held.append((x, y, keys))

    tool = ComputerTool(Keyboard())
    moved = await call_tool(tool.local, type="move", x=1, y=2, keys=["SHIFT"])
    assert (moved.status, held) == ("ok", [(1, 2, ["SHIFT"])])
    clicked = await call_tool(tool.local, type="click", x=1, y=2, keys=["SHIFT"])
    assert clicked.output == "This computer cannot hold keys during 'click'."


@pytest.mark.parametrize("field", ["env", "timeout_ms", "working_directory", "user"])
async def test_a_command_with_a_malformed_part_is_not_run(field: str) -> None:
    """The executor can rely on the types of its request."""
    called = await call_tool(LocalShellTool(_shell).local, {"command": ["ls"], field: [1]})
    assert called.status == "invalid_args"
    assert f"{field}: expected" in str(called.output)


async def test_an_unsupported_action_is_reported_to_the_model() -> None:
    """A computer can lack a wheel; the model then tries another action."""
    call = ToolCallItem(
        call_id="c1",
        name="computer_use_preview",
        kind="computer",
        arguments='{"type":"scroll","x":1,"y":2,"scroll_x":0,"scroll_y":9}',
    )
    (output,) = _outputs(await _answer(ComputerTool(Screen()), call))
    assert (output.status, output.output) == (
        "tool_error",
        "This computer does not support the action 'scroll'.",
    )


@pytest.mark.parametrize("allowed", [None, False, True])
async def test_an_action_with_a_safety_check_needs_an_approval(
    allowed: bool | None,
) -> None:
    """Actions with a warning of the provider must not run unattended."""
    screen, seen = Screen(), list[SafetyCheck]()

    def look(checks: list[SafetyCheck]) -> bool:
        seen.extend(checks)
        return bool(allowed)

    call = ToolCallItem(
        call_id="c1",
        name="computer_use_preview",
        kind="computer",
        arguments=(
            '{"type":"type","text":"hi",'
            '"pending_safety_checks":[{"id":"s1","code":"malicious","message":"Look here"}]}'
        ),
    )
    tool = ComputerTool(screen, on_safety_check=None if allowed is None else look)
    (output,) = _outputs(await _answer(tool, call))
    assert (output.status, bool(screen.done)) == (("ok", True) if allowed else ("denied", False))
    if allowed is not None:
        assert seen == [SafetyCheck(id="s1", code="malicious", message="Look here")]


REQUEST = ToolCallItem(
    call_id="r1",
    name="git",
    kind="mcp_approval",
    arguments='{"name":"push","arguments":"{}","server_label":"git"}',
)


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("decision", "status", "expected_text"),
    [
        (True, "ok", "approve"),
        ({"approve": True}, "ok", "approve"),
        ({"approve": False, "reason": "not on Fridays"}, "denied", "not on Fridays"),
        (False, "denied", "The application refused this call."),
    ],
)
async def test_the_application_decides_about_calls_of_a_remote_server(
    decision: Any, status: str, expected_text: str
) -> None:
    """A callback can approve, reject, and give a reason."""
    asked: list[MCPApprovalRequest] = []

    def decide(request: MCPApprovalRequest) -> Any:
        asked.append(request)
        return decision

    (output,) = _outputs(await _answer(HostedMCPTool(MCP, on_approval_request=decide), REQUEST))
    assert (output.status, output.output) == (status, expected_text)
    assert asked == [
        MCPApprovalRequest(server_label="git", name="push", arguments="{}", call_id="r1")
    ]


async def test_without_a_callback_a_remote_call_waits_for_approval() -> None:
    """The request is an interruption of the run, and accepts a decision."""
    waiting = await _answer(HostedMCPTool(MCP), REQUEST)
    assert [(item.name, item.call_id) for item in waiting.interruptions] == [("git", "r1")]
    refused = await _answer(
        HostedMCPTool(MCP), REQUEST, approve=lambda _: Decision(approved=False, message="no")
    )
    assert [item.output for item in _outputs(refused)] == ["no"]
    allowed = await _answer(HostedMCPTool(MCP), REQUEST, approve=lambda _: True)
    assert [item.output for item in _outputs(allowed)] == ["approve"]
