"""The gateway: tools of several real servers through one, for clients of both protocol eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import ToolContext, function_tool
from agents_tools.errors import MCPConnectionError, MCPError, UserError
from agents_tools.mcp import (
    MCPGateway,
    MCPToolManager,
    gateway as gateway_module,
    mcp_server,
    prompt,
    resource,
)
from agents_tools.mcp.server import source_updates
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, call_tool, tool_call
from tests.mcp.small import LINE, Small, listening, over_http
from tests.mcp.test_client_features import Logging, notes_of
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from agents_tools.tool.question import Question

NEEDS_TWO = pytest.mark.skipif(LINE < 2, reason="SDK 1.x supports one protocol era")
ECHO = str(Path(__file__).parents[1] / "cli" / "mcp_echo_server.py")
SHOP = '''
from typing import Any

from agents_tools import ToolContext, ToolProgressEvent, function_tool, streaming_tool
from agents_tools.mcp import prompt, resource, sample, serve


@resource("shop://{thing}/price")
def price_of(thing: str) -> str:
    """The price of a thing."""
    return f"{thing}: 3"


@resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    """The logo."""
    return b"png"


@prompt(complete={"thing": lambda typed: [typed + "cup"]})
def sell(thing: str, to: str = "all") -> str:
    """Sell a thing."""
    return f"Sell {thing} to {to}."


@function_tool
async def slogan(thing: str) -> str:
    """Write a slogan."""
    return (await sample(f"Praise {thing}.")).text


@function_tool
def praise(thing: str) -> str:
    """Praise a thing."""
    return f"{thing} is good"


@function_tool
async def advertise(thing: str) -> str:
    """Write an advertisement with a model that can call a tool."""
    return (await sample(f"Advertise {thing}.", tools=[praise])).text


@function_tool
async def order(thing: str, ctx: ToolContext) -> str:
    """Order something."""
    count = await ctx.ask(f"How many {thing}?", answer=int)
    return f"ordered {count} {thing}"


@streaming_tool
async def work(steps: int) -> Any:
    """Work."""
    for step in range(1, steps + 1):
        yield ToolProgressEvent(step, total=steps)
    yield f"did {steps}"


@function_tool
def price(thing: str) -> dict[str, int]:
    """Look up a price."""
    return {thing: 3}


TOOLS = [order, work, price, slogan, advertise]
MORE = {
    "resources": [price_of, logo],
    "prompts": [sell],
    "instructions": "Ask for prices first.\\u202e",
}
if __name__ == "__main__":
    serve(TOOLS, **MORE)
'''


@pytest.fixture
async def config(tmp_path: Path) -> AsyncGenerator[dict[str, Any]]:
    """Yield the configuration of a current server, an older one, and one that cannot start."""
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    shop = runpy.run_path(str(path))
    app = mcp_server(shop["TOOLS"], **shop["MORE"], stateless=False)
    async with contextlib.aclosing(app), listening(app) as address:
        yield {
            "mcpServers": {
                "shop": {"url": f"{address}/mcp"},
                "echo": {"command": sys.executable, "args": [ECHO, "good", str(tmp_path)]},
                "dead": {"command": sys.executable, "args": [ECHO, "dead"]},
            }
        }


async def call(manager: MCPToolManager, name: str, /, **arguments: Any) -> Any:
    """Call a tool through the gateway and return its outcome."""
    tools = {tool.name: tool for tool in manager.get_tools()}
    return await tools[name].call(ToolContext(), json.dumps(arguments))


def answering(value: Any, questions: list[str]) -> Any:
    """Return a handler that records questions and answers them."""

    def answer(question: Question) -> Any:
        questions.append(question.message)
        return value

    return answer


async def connected(gateway: MCPGateway, manager: MCPToolManager, **options: Any) -> MCPToolManager:
    """Connect a client to a server of the gateway, in this process."""
    app = mcp_server(
        gateway,
        resources=gateway,
        prompts=gateway,
        instructions=gateway.instructions,
        **options,
    )
    await manager.add_server("g", server=app._server.server, prefix=None)
    return manager


async def test_tools_of_all_servers_are_offered_with_their_prefixes(
    config: dict[str, Any],
) -> None:
    """A server that cannot start is left out; definitions and results keep their structure."""
    async with asyncio.timeout(60), MCPGateway(config) as gateway, MCPToolManager() as client:
        assert list(gateway.manager.failures) == ["dead"]
        await connected(gateway, client)
        names = client.get_tool_names()
        assert {"shop_order", "shop_work", "shop_price", "echo_echo"} <= set(names)
        tools = {tool.name: tool for tool in client.get_tools()}
        assert tools["echo_echo"].annotations is not None
        assert tools["echo_echo"].annotations.read_only
        assert (await call(client, "echo_echo", text="a", times=2)).output == "a a"
        priced = await call(client, "shop_price", thing="tea")
        assert priced.value.structured == {"tea": 3}
        failed = await call(client, "echo_fail")
        assert (failed.status, failed.output) == ("tool_error", "it does not work")


async def test_progress_and_questions_are_passed_on(config: dict[str, Any]) -> None:
    """The user of the client answers the question of a server behind the gateway."""
    questions: list[str] = []
    async with (
        asyncio.timeout(60),
        MCPGateway(config) as gateway,
        MCPToolManager(ask=answering(4, questions)) as client,
    ):
        await connected(gateway, client)
        assert (await call(client, "shop_order", thing="cups")).output == "ordered 4 cups"
        assert len(questions) == 1
        assert "How many cups?" in questions[0]
        steps: list[float] = []
        tool = {one.name: one for one in client.get_tools()}["shop_work"]
        context: ToolContext[Any] = ToolContext(
            emit=lambda event: steps.append(getattr(event, "current", 0))
        )
        outcome = await tool.call(context, '{"steps": 3}')
        assert outcome.output == "did 3"
        assert [step for step in steps if step] == [1, 2, 3]


@pytest.mark.leaves_behind("the shop waits for its question to be answered until it ends")
async def test_requests_for_a_model_go_to_the_client(config: dict[str, Any]) -> None:
    """The model of the client answers; a client without one is an error of the call."""

    def praise(params: Any, context: Any) -> str:
        del context
        return f"praised: {params['messages'][0]['content']['text']}"

    async with (
        asyncio.timeout(60),
        MCPGateway(config) as gateway,
        MCPToolManager(sample=praise) as client,
        MCPToolManager() as without,
    ):
        await connected(gateway, client)
        outcome = await call(client, "shop_slogan", thing="tea")
        assert outcome.output == "praised: Praise tea."
        await connected(gateway, without)
        refused = await call(without, "shop_slogan", thing="tea")
        assert (refused.status, "sampling" in str(refused.output)) == ("tool_error", True)


@pytest.mark.leaves_behind("the shop waits for the model of the client until it ends")
async def test_the_model_of_the_client_can_call_tools_of_a_server(config: dict[str, Any]) -> None:
    """The gateway passes the tools on; a client that cannot use them is an error of the call."""
    model = ScriptedModel(
        [tool_call("praise", thing="tea"), lambda request: f"{request.input[-1].output}!"]
    )
    async with (
        asyncio.timeout(60),
        MCPGateway(config, start_timeout=30) as gateway,
        MCPToolManager(sample=model) as client,
        MCPToolManager(sample=lambda *_: "text") as without,
    ):
        await connected(gateway, client)
        assert (await call(client, "shop_advertise", thing="tea")).output == "tea is good!"
        await connected(gateway, without)
        refused = await call(without, "shop_advertise", thing="tea")
        assert (refused.status, "sampling.tools" in str(refused.output)) == ("tool_error", True)


async def test_resources_and_prompts_of_all_servers_are_offered(
    config: dict[str, Any],
) -> None:
    """Resources keep their URIs, prompts get the prefixes of the tools."""
    config["mcpServers"]["echo"]["args"] = [ECHO, "features"]
    async with asyncio.timeout(60), MCPGateway(config) as gateway, MCPToolManager() as client:
        await connected(gateway, client)
        resources = await client.list_resources("g")
        assert {one["uri"] for one in resources} == {"shop://logo", "note:///one", "logo:///small"}
        templates = await client.list_resource_templates("g")
        assert {one["uriTemplate"] for one in templates} == {
            "shop://{thing}/price",
            "note:///{name}",
        }
        read = await client.read_resource("g", "shop://big%20cup/price")
        assert read[0]["text"] == "big cup: 3"
        assert (await client.read_resource("g", "note:///x"))[0]["text"].startswith("the note x")
        logo = await client.read_resource("g", "shop://logo")
        assert (logo[0]["mimeType"], logo[0]["blob"]) == ("image/png", "cG5n")
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("g", "other://x")
        prompts = {one["name"]: one for one in await client.list_prompts("g")}
        assert sorted(prompts) == ["echo_greet", "shop_sell"]
        assert prompts["shop_sell"]["description"] == "Sell a thing."
        assert [one["required"] for one in prompts["shop_sell"]["arguments"]] == [True, False]
        messages = await client.get_prompt("g", "shop_sell", {"thing": "tea"})
        assert messages["messages"][0]["content"]["text"] == "Sell tea to all."
        greeting = await client.get_prompt("g", "echo_greet", {"who": "Ada"})
        assert [one["content"]["type"] for one in greeting["messages"]] == ["text", "image"]


async def test_arguments_of_prompts_are_completed(config: dict[str, Any]) -> None:
    """The server of the prompt completes them."""
    async with asyncio.timeout(60), MCPGateway(config) as gateway:
        prompts = {one.name: one for one in await gateway.get_prompts()}
        found = await prompts["shop_sell"].build().complete("thing", "tea", {})
        assert found["values"] == ["teacup"]


async def test_instructions_of_servers_are_combined_and_cleaned(config: dict[str, Any]) -> None:
    """Each text has the name of its server, and no hidden characters."""
    async with asyncio.timeout(60), MCPGateway(config) as gateway, MCPToolManager() as client:
        await connected(gateway, client)
        instructions = client.get_server_info("g")["instructions"]
        assert instructions == (
            "The MCP server 'echo' describes how to use its tools:\n> Ask for echoes.\n\n"
            "The MCP server 'shop' describes how to use its tools:\n> Ask for prices first."
        )


async def test_notes_and_log_messages_of_servers_are_passed_on(config: dict[str, Any]) -> None:
    """Options of the manager apply to the servers of a file; clients choose their level."""
    small = Logging()
    async with asyncio.timeout(60), over_http(small) as url, MCPToolManager() as client:
        servers = {"mcpServers": {"box": {"url": url}}}
        async with MCPGateway(servers, log_level="debug") as gateway:
            assert gateway.manager.get_connection("box").config.log_level == "debug"
            app = mcp_server(gateway)
            await client.add_server("g", server=app._server.server, prefix=None, log_level="info")
            notes = notes_of(await call_tool(client.get_tools()[0], {}))
            assert [note.data[:9] for note in notes] == ["too detai", "watch out", '{"disk": ']
            await client.remove_server("g")


@pytest.mark.parametrize("era", ["legacy", pytest.param("modern", marks=NEEDS_TWO)])
async def test_updates_of_resources_are_passed_on(era: str) -> None:
    """The servers are asked for the updates that clients want, and only for those."""

    @resource("tea://{kind}")
    def tea(kind: str) -> str:
        """A kind of tea."""
        return kind

    updates: asyncio.Queue[str] = asyncio.Queue()
    origin = mcp_server([], resources=tea, stateless=False)
    small = Small(legacy=True)
    async with asyncio.timeout(60), listening(origin) as address, over_http(small) as other:
        servers = {"tea": {"url": f"{address}/mcp", "protocol": era}, "box": {"url": other}}
        async with MCPGateway({"mcpServers": servers}) as gateway, MCPToolManager() as client:
            app = mcp_server(gateway, resources=gateway)
            await client.add_server("g", server=app._server.server, protocol=era)
            followed = gateway.manager.get_connection("tea").subscriptions
            await client.subscribe_resource("g", "tea://green", updates.put_nowait)
            assert followed.uris == ["tea://green"]
            for uri in ("tea://black", "tea://green"):
                await origin.resource_updated(uri)
            assert await updates.get() == "tea://green"
            await client.unsubscribe_resource("g", "tea://green")
            await origin.resource_updated("tea://green")
            await comes(lambda: followed.uris == [])
            assert updates.empty()
            if era == "legacy":
                for uri in ("none://x", "shelf:///tea"):  # unknown, and of a server without updates
                    with pytest.raises(MCPError, match="are not available"):
                        await client.subscribe_resource("g", uri, updates.put_nowait)
        await origin.aclose()


@pytest.mark.parametrize("era", ["legacy", pytest.param("modern", marks=NEEDS_TWO)])
async def test_resources_that_no_client_follows_any_more_leave_their_places(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without updates, they were followed for ever, until no client could subscribe."""
    monkeypatch.setattr(source_updates, "_MAX_URIS", 2)

    @resource("tea://{kind}")
    def tea(kind: str) -> str:
        """A kind of tea."""
        return kind

    updates: asyncio.Queue[str] = asyncio.Queue()
    origin = mcp_server([], resources=tea, stateless=False)
    async with asyncio.timeout(60), listening(origin) as address:
        servers = {"tea": {"url": f"{address}/mcp", "protocol": era}}
        async with MCPGateway({"mcpServers": servers}) as gateway, MCPToolManager() as client:
            app = mcp_server(gateway, resources=gateway)
            await client.add_server("g", server=app._server.server, protocol=era)
            followed = gateway.manager.get_connection("tea").subscriptions
            for kind in ("green", "black", "white"):
                await client.subscribe_resource("g", f"tea://{kind}", updates.put_nowait)
                if kind != "white":
                    await client.unsubscribe_resource("g", f"tea://{kind}")
            await comes(lambda: "tea://white" in followed.uris)
            assert len(followed.uris) == 2
            await origin.resource_updated("tea://white")
            assert await updates.get() == "tea://white"
        await origin.aclose()


async def test_names_are_filtered_and_changed(config: dict[str, Any]) -> None:
    """Patterns apply to the names with prefixes, before they are changed."""
    async with (
        asyncio.timeout(60),
        MCPGateway(
            config,
            allow=["shop_*", "echo_echo"],
            deny=["*_work", "*_slogan", "*_advertise"],
            rename={"shop_order": "buy"},
        ) as gateway,
        MCPToolManager() as client,
    ):
        await connected(gateway, client)
        assert sorted(client.get_tool_names()) == ["buy", "echo_echo", "shop_price"]
        hidden = await gateway.get_tools()
        assert "shop_work" not in {tool.name for tool in hidden}


@pytest.mark.parametrize("options", [{"tool_search": True}, {"max_tokens": 50}])
async def test_many_tools_are_behind_a_search(
    config: dict[str, Any], options: dict[str, Any]
) -> None:
    """A tool that was found is called with its own arguments and questions."""
    questions: list[str] = []
    async with (
        asyncio.timeout(60),
        MCPGateway(config, **options) as gateway,
        MCPToolManager(ask=answering(4, questions)) as client,
    ):
        await connected(gateway, client)
        assert client.get_tool_names() == ["call_tool", "tool_search"]
        found = await call(client, "tool_search", query="order something")
        assert "shop_order" in str(found.output)
        called = await call(client, "call_tool", name="shop_order", arguments={"thing": "cups"})
        assert (called.output, len(questions)) == ("ordered 4 cups", 1)


async def test_definitions_within_the_budget_are_offered(config: dict[str, Any]) -> None:
    """The search is used only if it saves tokens."""
    async with asyncio.timeout(60), MCPGateway(config, max_tokens=100_000) as gateway:
        assert "echo_echo" in {tool.name for tool in await gateway.get_tools()}


@pytest.mark.parametrize(("answer", "status"), [(True, "ok"), (False, "denied"), (None, "denied")])
async def test_the_user_of_the_client_approves_calls(
    config: dict[str, Any], answer: bool | None, status: str
) -> None:
    """The question has the whole arguments; calls of other tools are not asked about."""
    config["mcpServers"]["shop"]["require_approval"] = ["price"]
    questions: list[str] = []
    async with (
        asyncio.timeout(60),
        MCPGateway(config, require_approval=["echo_wipe"]) as gateway,
        MCPToolManager(ask=answering(answer, questions)) as client,
    ):
        await connected(gateway, client)
        assert (await call(client, "echo_echo", text="a")).output == "a"
        assert questions == []
        outcome = await call(client, "shop_price", thing="tea\u202e")
        assert (outcome.status == "ok") == (status == "ok")
        assert "Allow the call of shop_price" in questions[0]
        assert r"tea\u202e" in questions[0]
        await call(client, "echo_wipe")
        assert "Allow the call of echo_wipe" in questions[1]


async def test_calls_are_denied_if_the_client_cannot_ask(config: dict[str, Any]) -> None:
    """Without elicitation, nobody can approve."""
    async with (
        asyncio.timeout(60),
        MCPGateway(config, require_approval=["*"]) as gateway,
        MCPToolManager() as client,
    ):
        await connected(gateway, client)
        outcome = await call(client, "shop_price", thing="tea")
        assert outcome.status == "tool_error"
        assert "shop_price" in str(outcome.output)


@pytest.mark.slow
async def test_a_server_that_has_failed_is_connected_again(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscribers, such as `mcp_server`, are notified of its tools."""
    monkeypatch.setattr(gateway_module, "_RETRY_DELAYS", (0.05,))
    late = tmp_path / "late.py"
    config["mcpServers"]["dead"] = {
        "command": sys.executable, "args": [str(late)], "connect_timeout": 30
    }  # fmt: skip
    changed = asyncio.Event()
    async with asyncio.timeout(60), MCPGateway(config) as gateway:
        assert list(gateway.manager.failures) == ["dead"]
        gateway.subscribe(changed.set)
        late.write_text(SHOP)
        while "dead_price" not in {tool.name for tool in await gateway.get_tools()}:
            await changed.wait()
            changed.clear()


@pytest.mark.slow
async def test_servers_are_connected_again_after_one_was_removed_meanwhile(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt with a server that is not known any more ended all later attempts."""
    monkeypatch.setattr(gateway_module, "_RETRY_DELAYS", (0.05,))
    late, tried = tmp_path / "late.py", tmp_path / "tried"
    for name, file in (("slow", late), ("gone", tmp_path / "none.py")):
        config["mcpServers"][name] = {
            "command": sys.executable, "args": [str(file)], "connect_timeout": 30
        }  # fmt: skip
    async with asyncio.timeout(60), MCPGateway(config) as gateway:
        gateway.manager.failures = {"slow": gateway.manager.failures["slow"]} | (
            gateway.manager.failures
        )  # in this order
        late.write_text(f"import time; open({str(tried)!r}, 'w'); time.sleep(0.3); 1 / 0")
        await comes(tried.exists)
        await gateway.manager.remove_server("gone")
        late.write_text(SHOP)
        await comes(lambda: "slow_price" in gateway.manager.get_tool_names())


def first() -> str:
    """The first thing."""
    return "1"


def second() -> str:
    """The second thing."""
    return "2"


class Shelf:
    """Resources and prompts that can change, as an object for `mcp_server`."""

    def __init__(self) -> None:
        self.resources = [resource("shelf://first")(first)]
        self.prompts: list[Any] = []
        self.callbacks: dict[str, Any] = {}

    def get_resources(self) -> list[Any]:
        return list(self.resources)

    def get_prompts(self) -> list[Any]:
        return list(self.prompts)

    def subscribe_list(self, kind: str, callback: Any) -> None:
        self.callbacks[kind] = callback


@pytest.mark.parametrize("era", ["legacy", pytest.param("modern", marks=NEEDS_TWO)])
async def test_changes_of_lists_of_resources_and_prompts_are_passed_on(era: Any) -> None:
    """The clients are notified, and read the new lists at once."""

    def hello() -> str:
        """Return a greeting."""
        return "hello"

    shelf = Shelf()
    app = mcp_server([], resources=shelf, prompts=shelf, stateless=False)
    changed = {kind: asyncio.Event() for kind in ("resources", "prompts")}
    async with asyncio.timeout(60), listening(app) as inner:
        entry = {"url": f"{inner}/mcp", "protocol": era}
        async with MCPGateway({"mcpServers": {"shelf": entry}}) as gateway:
            served = mcp_server([], resources=gateway, prompts=gateway, stateless=False)
            async with listening(served) as outer, MCPToolManager() as client:
                for kind, event in changed.items():
                    client.subscribe_list(kind, event.set)  # type: ignore[arg-type]
                await client.add_server("g", url=f"{outer}/mcp", protocol=era)
                assert len(await client.list_resources("g")) == 1
                assert await client.list_prompts("g") == []
                await client.ping("g")
                for event in changed.values():
                    event.clear()
                shelf.resources.append(resource("shelf://second")(second))
                shelf.callbacks["resources"]()
                await changed["resources"].wait()
                while len(await client.list_resources("g")) == 1:
                    await changed["resources"].wait()
                shelf.prompts.append(prompt(hello))
                shelf.callbacks["prompts"]()
                await changed["prompts"].wait()
                while not (prompts := await client.list_prompts("g")):
                    await changed["prompts"].wait()
                assert [one["name"] for one in prompts] == ["shelf_hello"]


async def test_more_tools_can_be_offered(config: dict[str, Any]) -> None:
    """A function of this process next to those of servers; its approval is asked for too."""

    @needs_approval
    @function_tool
    def near() -> str:
        """Be near."""
        return "here"

    questions: list[str] = []
    async with (
        asyncio.timeout(60),
        MCPGateway(config, tools=[near]) as gateway,
        MCPToolManager(ask=answering(True, questions)) as client,
    ):
        await connected(gateway, client)
        assert (await call(client, "near")).output == "here"
        assert len(questions) == 1


def names_of(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value)


@pytest.mark.parametrize("allow", [["nothing*"]])
async def test_patterns_that_leave_no_tool_are_an_error(
    config: dict[str, Any], allow: Sequence[str]
) -> None:
    """The names that exist are in the message, and the servers are closed."""
    gateway = MCPGateway(config, allow=allow)
    with pytest.raises(UserError, match="No tool matches") as raised:
        await gateway.__aenter__()
    assert "shop_order" in names_of(raised)
    assert gateway.manager.get_stats()["connected"] == 0


async def test_a_pattern_that_matches_no_tool_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A misspelled pattern would let clients call a tool without the approval."""

    @function_tool
    def delete_order(order: int) -> None:
        """Delete an order."""

    options: Any = {"require_approval": ["delete_*", "dellete_*"], "rename": {"order": "buy"}}
    async with MCPGateway([], tools=[delete_order], **options):
        assert [record.getMessage() for record in caplog.records] == [
            f"MCPGateway({option}=...): {pattern!r} matches none of the tools delete_order. "
            "Correct it, unless a server adds such a tool later."
            for option, pattern in [("rename", "order"), ("require_approval", "dellete_*")]
        ]


async def test_a_gateway_without_servers_is_an_error(config: dict[str, Any]) -> None:
    """A process supervisor sees that nothing is served."""
    config["mcpServers"] = {"dead": config["mcpServers"]["dead"]}
    with pytest.raises(MCPConnectionError, match="dead"):
        async with MCPGateway(config):
            pass
