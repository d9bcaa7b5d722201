"""The documented programs run: with a scripted model, and over each wire format of an HTTP server.

The server is aimock, which knows nothing of this library; the requests go through the official
SDKs. So neither end of the wire is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import NotifyStreamEvent, RunFinishedEvent
from agents_tools.agents import load_model
from agents_tools.testing import ScriptedModel, check_events, override_model, tool_call
from tests.conformance import programs
from tests.conformance.aimock import COMMAND, Mock, aimock

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

PROVIDERS = ("openai/gpt-5", "openai-chat/gpt-5", "anthropic/claude-sonnet-5")
MODELS = ["scripted", *(pytest.param(one, marks=pytest.mark.external) for one in PROVIDERS)]


def _call(name: str, **arguments: Any) -> Any:
    return tool_call(name, arguments)


SCRIPT: dict[str, list[Any]] = {
    "Assistant": ["Go to the Blue Door: it is sunny."],
    "orchestrator_agent": [
        [_call("translate_to_spanish", input="Hello, how are you?")],
        "Hola, ¿cómo estás?",
    ],
    "Spanish agent": ["Hola, ¿cómo estás?"],
    "French agent": ["Bonjour"],
    "OrchestratorAgent": [[_call("run_sub_agent", input="Do the subtask")], "All is done."],
    "SubAgent": [[_call("report_status", step="packing")], "The subtask is done."],
    "Caller": [[_call("run_my_agent")], "It said: Paris"],
    "My agent": ["Paris"],
    "MainAgent": [[_call("enterprise_assistant", input="the forecast")], "The forecast is good."],
    "Reader": [[_call("get_data_json", input="ACME")], "Three orders."],
    "Data agent": [[_call("load_orders", customer="ACME")], "I have loaded them."],
}
"""What each agent's model says."""

MARKS = {
    "Assistant": ("coffee shop", None),
    "orchestrator_agent": ("Say 'Hello, how are you?' in Spanish.", None),
    "Spanish agent": ("Hello, how are you?", "to Spanish"),
    "OrchestratorAgent": ("Please run the sub-agent", None),
    "SubAgent": ("Do the subtask", None),
    "Caller": ("Ask my agent.", None),
    "My agent": ("What is the capital of France?", None),
    "MainAgent": ("Ask the enterprise.", None),
    "Reader": ("Read the data of ACME.", None),
    "Data agent": ("ACME", "Load data."),
}
"""By what the server tells the agents apart: the user's message and the instructions."""


def _fixtures() -> list[dict[str, Any]]:
    """Return the script as answers of the server; the specific ones first."""
    answers: list[dict[str, Any]] = []
    for agent in sorted(MARKS, key=lambda name: -len(MARKS[name][0])):
        message, instructions = MARKS[agent]
        for turn, step in enumerate(SCRIPT[agent]):
            match: dict[str, Any] = {"userMessage": message, "hasToolResult": turn > 0}
            if instructions is not None:
                match["systemMessage"] = instructions
            response: dict[str, Any] = (
                {"content": step}
                if isinstance(step, str)
                else {"toolCalls": [{"name": c.name, "arguments": c.arguments} for c in step]}
            )
            answers.append({"match": match, "response": response})
    return answers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Mock]:
    """Run the server with the script."""
    if not COMMAND.exists():
        pytest.fail("The mock server is not installed; `make test-all` installs it.")
    folder: Path = tmp_path_factory.mktemp("aimock")
    with aimock(folder, _fixtures(), "--chunk-size", "7") as mock:
        yield mock


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """Let agents without a model use this one."""
    if request.param == "scripted":
        script = {agent: list(steps) for agent, steps in SCRIPT.items()}
        with override_model(ScriptedModel(script)):
            yield request.param
        return
    mock: Mock = request.getfixturevalue("server")
    monkeypatch.setenv("AGENTS_TOOLS_MODEL", request.param)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{mock.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", mock.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    load_model.cache_clear()
    yield request.param
    load_model.cache_clear()


@pytest.mark.requirement("A57", "A71")
async def test_agents_as_tools_translate(model: str) -> None:
    """The simplest program with sub-agents must run as it stands."""
    assert await programs.translation_orchestrator() == "Hola, ¿cómo estás?"


@pytest.mark.requirement("A52", "A54", "A55")
async def test_a_streaming_orchestrator_shows_what_its_sub_agent_does(model: str) -> None:
    """What the sub-agent's tool says must be live in the outer stream, with its place."""
    events = await programs.streaming_orchestrator()
    check_events(events)
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert [(event.data, len(event.path)) for event in said] == [
        ("[1/2] packing", 2),
        ("[2/2] checking", 2),
    ]
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert (last.status, last.output) == ("ok", "All is done.")


@pytest.mark.requirement("A62")
async def test_a_function_tool_runs_an_agent_by_hand(model: str) -> None:
    """Whoever needs options that `as_tool` has not must get there with `Runner.run`."""
    assert await programs.agent_in_a_function() == "It said: Paris"


@pytest.mark.requirement("A60", "A61")
@pytest.mark.parametrize("model", MODELS[1:], indirect=True)  # an override precedes a provider
async def test_a_sub_agent_has_a_provider_of_its_own(model: str) -> None:
    """The provider must get the name exactly as the agent has it, prefix and all."""
    own = ScriptedModel(["Sunny."])
    output, asked = await programs.custom_provider(own)
    assert (output, asked) == ("The forecast is good.", ["doubao/enterprise-model"])


@pytest.mark.requirement("A63", "A64")
async def test_an_extractor_hands_on_what_it_finds_in_the_items(model: str) -> None:
    """The extractor must see the inner run's items, and its value be the tool's output."""
    output, extracted = await programs.custom_extractor()
    assert (output, extracted) == ("Three orders.", '{"customer":"ACME","orders":[1,2,3]}')


@pytest.mark.requirement("A9", "A10")
async def test_hosted_tools_go_to_the_provider(model: str) -> None:
    """Hosted tools must reach the Responses API, and be refused by name where there is none."""
    if model in {"scripted", "openai/gpt-5"}:
        assert await programs.hosted_tools() == "Go to the Blue Door: it is sunny."
        return
    with pytest.raises(Exception, match=r"(web|file)_search") as caught:
        await programs.hosted_tools()
    assert type(caught.value).__module__ == "agents_tools.errors"
