"""Resources, prompts and completion of our server, with the client of the SDK in both eras."""

from __future__ import annotations

import asyncio
import base64
import enum
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import mcp
import pytest
from mcp.types import PromptReference, ResourceTemplateReference

from agents_tools import (
    Agent,
    ToolContext,
    ToolError,
    ToolOutputImage,
    ToolProgressEvent,
    UserError,
    function_tool,
)
from agents_tools.mcp import Prompt, Resource, mcp_server, prompt, resource
from agents_tools.testing import ScriptedModel
from tests.mcp.served import PNG

Client: Any = pytest.importorskip("mcp.client.client", reason="SDK 1.x has no such client").Client
MCPError: Any = mcp.MCPError
BOUND = 30.0
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@resource("guide://{topic}/{page}", title="Guide", mime_type="text/markdown")
def guide(topic: str, page: int = 1) -> str:
    """A page of a guide.

    Args:
        topic: What it is about.
        page: The number of the page.
    """
    if page > 9:
        raise ToolError(f"The guide has 9 pages: page {page} does not exist.")
    return f"# {topic}, page {page + 0}"


@resource("files:///{path*}")
async def file(path: str) -> bytes:
    """A file."""
    return path.encode()


@resource("stock://all")
async def stock() -> AsyncIterator[Any]:
    """The stock."""
    yield ToolProgressEvent(1, total=1, message="counted")
    yield {"cups": 12}


@resource("picture://logo")
def logo() -> ToolOutputImage:
    """The logo."""
    return ToolOutputImage(data=PNG, mime_type="image/png")


@resource("broken://always")
def broken() -> str:
    """Fail."""
    raise RuntimeError("the password is hunter2")


class Size(enum.Enum):
    """The size of a cup."""

    SMALL = "small"
    LARGE = "large"


@prompt
def review(code: str, language: Literal["python", "rust", "ruby"] = "python") -> str:
    """Review code.

    Args:
        code: The code.
        language: Its language.
    """
    return f"Review this {language} code: {code}"


def find_cities(typed: str, others: Mapping[str, str]) -> list[str]:
    """Return cities."""
    return [f"{typed}{others.get('country', '')}{number}" for number in range(150)]


@prompt(title="Plan a trip", complete={"city": find_cities})
async def trip(
    ctx: ToolContext[Any], city: str, days: int, country: str = "", guided: bool = False
) -> list[Any]:
    """Plan a trip."""
    assert ctx.context.protocol_version
    return [
        f"{days + 1} days in {city} ({country}, {guided})",
        ToolOutputImage(data=PNG, mime_type="image/png"),
        {"role": "assistant", "content": "I will plan it."},
        {
            "role": "user",
            "content": {"type": "resource", "resource": {"uri": "guide://a/1", "text": "page"}},
        },
    ]


RESOURCES = [
    guide, file, stock, logo, broken,
    Resource.from_value("config://app", {"debug": True}, title="Settings"),
]  # fmt: skip


def server(**options: Any) -> Any:
    """Return the SDK's server, for a client in memory."""
    given: dict[str, Any] = {"resources": RESOURCES, "prompts": [review, trip], **options}
    return mcp_server(**given)._server.server  # pyright: ignore[reportPrivateUsage]


def connected(mode: Any, **options: Any) -> Any:
    """Return a client of the server."""
    return Client(server(**options), mode=mode)


@ERAS
async def test_resources_and_templates_are_listed_with_their_descriptions(mode: Any) -> None:
    async with asyncio.timeout(BOUND), connected(mode) as client:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        capabilities = client.server_capabilities
    assert [str(one.uri) for one in listed] == [
        "broken://always", "config://app", "picture://logo", "stock://all",
    ]  # fmt: skip
    assert [one.uri_template for one in templates] == ["files:///{path*}", "guide://{topic}/{page}"]
    assert (templates[1].name, templates[1].title) == ("guide", "Guide")
    assert (templates[1].description, templates[1].mime_type) == (
        "A page of a guide.",
        "text/markdown",
    )
    assert capabilities is not None
    assert capabilities.resources is not None
    assert capabilities.resources.subscribe is True
    assert capabilities.completions is not None


@ERAS
@pytest.mark.parametrize(
    ("uri", "kind", "text"),
    [
        ("guide://green%20tea/2", "text/markdown", "# green tea, page 2"),
        ("config://app", "application/json", '{"debug":true}'),
        ("stock://all", "application/json", '{"cups":12}'),
    ],
)
async def test_text_of_resources_is_read(mode: Any, uri: str, kind: str, text: str) -> None:
    async with asyncio.timeout(BOUND), connected(mode) as client:
        (content,) = (await client.read_resource(uri)).contents
    assert content.model_dump(exclude_none=True, by_alias=True) == {
        "uri": uri,
        "mimeType": kind,
        "text": text,
    }


@ERAS
async def test_bytes_of_resources_are_read(mode: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("tea")
    resources = [file, logo, Resource.from_value("file:///notes", notes)]
    async with asyncio.timeout(BOUND), connected(mode, resources=resources) as client:
        (image,) = (await client.read_resource("picture://logo")).contents
        (data,) = (await client.read_resource("files:///a/b%20c.bin")).contents
        (text,) = (await client.read_resource("file:///notes")).contents
    assert base64.b64decode(image.blob) == PNG
    assert image.mime_type == "image/png"
    assert base64.b64decode(data.blob) == b"a/b c.bin"
    assert data.mime_type == "application/octet-stream"
    assert (text.mime_type, text.text) == ("text/plain", "tea")


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
async def test_a_missing_resource_has_the_code_of_the_protocol(mode: Any, code: int) -> None:
    async with asyncio.timeout(BOUND), connected(mode) as client:
        with pytest.raises(MCPError, match="Resource not found: guide://tea") as raised:
            await client.read_resource("guide://tea")
    assert (raised.value.error.code, raised.value.error.data) == (code, {"uri": "guide://tea"})


@ERAS
async def test_errors_of_resources_are_told_without_secrets(mode: Any) -> None:
    async with asyncio.timeout(BOUND), connected(mode) as client:
        with pytest.raises(MCPError, match="page 10 does not exist"):
            await client.read_resource("guide://tea/10")
        with pytest.raises(MCPError, match="integer"):
            await client.read_resource("guide://tea/last")
        with pytest.raises(MCPError, match="RuntimeError") as raised:
            await client.read_resource("broken://always")
    assert "hunter2" not in str(raised.value)


@ERAS
async def test_prompts_are_listed_and_their_arguments_converted(mode: Any) -> None:
    async with asyncio.timeout(BOUND), connected(mode) as client:
        prompts = (await client.list_prompts()).prompts
        simple = await client.get_prompt("review", {"code": "x = 1"})
        rich = await client.get_prompt("trip", {"city": "Bern", "days": "3", "guided": "true"})
    assert [one.name for one in prompts] == ["review", "trip"]
    assert [argument.model_dump(exclude_none=True) for argument in prompts[0].arguments or []] == [
        {"name": "code", "description": "The code.", "required": True},
        {"name": "language", "description": "Its language.", "required": False},
    ]
    assert prompts[1].title == "Plan a trip"
    (message,) = simple.messages
    assert (message.role, message.content.text) == ("user", "Review this python code: x = 1")
    assert simple.description == "Review code."
    roles = [one.role for one in rich.messages]
    kinds = [one.content.type for one in rich.messages]
    assert roles == ["user", "user", "assistant", "user"]
    assert kinds == ["text", "image", "text", "resource"]
    assert rich.messages[0].content.text == "4 days in Bern (, True)"


@ERAS
async def test_wrong_prompts_and_arguments_are_explained(mode: Any) -> None:
    @prompt
    def bad() -> list[Any]:
        """Return a message that is not valid."""
        return [{"role": "system", "content": "no"}]

    async with asyncio.timeout(BOUND), connected(mode, prompts=[bad, trip]) as client:
        with pytest.raises(MCPError, match="Did you mean 'trip'"):
            await client.get_prompt("trap", {})
        with pytest.raises(MCPError, match="days"):
            await client.get_prompt("trip", {"city": "Bern", "days": "three"})
        with pytest.raises(MCPError, match=r"expected the keys role \('user' or 'assistant'\)"):
            await client.get_prompt("bad", {})


@ERAS
async def test_arguments_are_completed(mode: Any) -> None:
    @resource("cup://{size}/{hot}")
    def cup(size: Size, hot: bool) -> str:
        """A cup."""
        return f"{size.value} {hot}"

    async with asyncio.timeout(BOUND), connected(mode, resources=[cup]) as client:

        async def complete(ref: Any, name: str, value: str, others: Any = None) -> Any:
            argument = {"name": name, "value": value}
            result = await client.complete(ref, argument, context_arguments=others)
            return result.completion

        ref = PromptReference(type="ref/prompt", name="review")
        languages = await complete(ref, "language", "RU")
        code = await complete(ref, "code", "x")
        trips = PromptReference(type="ref/prompt", name="trip")
        cities = await complete(trips, "city", "Be", {"country": "CH"})
        template = ResourceTemplateReference(type="ref/resource", uri="cup://{size}/{hot}")
        sizes = await complete(template, "size", "")
        hot = await complete(template, "hot", "f")
        with pytest.raises(MCPError, match="'tea' does not exist"):
            await complete(PromptReference(type="ref/prompt", name="tea"), "a", "")
    assert languages.values == ["rust", "ruby"]
    assert code.values == []
    assert (cities.values[0], len(cities.values)) == ("BeCH0", 100)
    assert (cities.total, cities.has_more) == (150, True)
    assert sizes.values == ["small", "large"]
    assert hot.values == ["false"]


async def test_lists_of_resources_have_pages() -> None:
    many = [Resource.from_value(f"note://{number:03}", str(number)) for number in range(25)]
    async with asyncio.timeout(BOUND), connected("auto", resources=many, page_size=10) as client:
        cursor: str | None = None
        sizes: list[int] = []
        while True:
            page = await client.list_resources(cursor=cursor)
            sizes.append(len(page.resources))
            cursor = page.next_cursor
            if cursor is None:
                break
    assert sizes == [10, 10, 5]


@pytest.mark.filterwarnings("ignore:resources/")
async def test_a_subscriber_is_notified_of_its_resource() -> None:
    """Up to 2025-11-25, a session subscribes; later, a stream is opened."""
    app = mcp_server(resources=RESOURCES)
    served: Any = app._server.server  # pyright: ignore[reportPrivateUsage]
    sdk_client: Any = Client
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.put_nowait(str(message.params.uri))

    async with (
        asyncio.timeout(BOUND),
        sdk_client(served, mode="legacy", message_handler=on_message) as client,
    ):
        await client.session.subscribe_resource("stock://all")
        await app.resource_updated("config://app")
        await app.resource_updated("stock://all")
        assert await heard.get() == "stock://all"
        await client.session.unsubscribe_resource("stock://all")
        await app.resource_updated("stock://all")
        await client.list_resources()
        assert heard.empty()
    async with (
        asyncio.timeout(BOUND),
        sdk_client(served) as client,
        client.listen(resource_subscriptions=["stock://all"]) as changes,
    ):
        await app.resource_updated("config://app")
        await app.resource_updated("stock://all")
        assert (await anext(aiter(changes))).uri == "stock://all"


async def test_changing_resources_and_prompts_are_asked_for_each_time() -> None:
    class Source:
        """A source of a growing number of items."""

        def __init__(self) -> None:
            self.notes = [Resource.from_value("note://1", "one")]
            self.prompts: list[Prompt] = []

        def get_resources(self) -> list[Resource]:
            """Return the current resources."""
            return self.notes

        async def get_prompts(self) -> list[Prompt]:
            """Return the current prompts."""
            return self.prompts

    source = Source()
    async with (
        asyncio.timeout(BOUND),
        connected("auto", resources=source, prompts=source) as client,
    ):
        assert len((await client.list_resources()).resources) == 1
        assert (await client.list_prompts()).prompts == []
        source.notes.append(Resource.from_value("note://2", "two"))
        source.prompts.append(review)
        assert len((await client.list_resources()).resources) == 2
        assert len((await client.list_prompts()).prompts) == 1


async def test_a_page_of_mcp_apps_has_its_media_type_and_metadata() -> None:
    page = Resource.from_value(
        "ui://clock", "<html></html>", metadata={"_meta": {"ui": {"prefersBorder": True}}}
    )
    async with asyncio.timeout(BOUND), connected("auto", resources=[page]) as client:
        (listed,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource("ui://clock")).contents
    for one in (listed, content):
        assert one.mime_type == "text/html;profile=mcp-app"
        assert one.meta == {"ui": {"prefersBorder": True}}


async def test_a_server_without_resources_declares_none() -> None:
    async with asyncio.timeout(BOUND), connected("auto", resources=[], prompts=[]) as client:
        capabilities = client.server_capabilities
    assert capabilities is not None
    assert capabilities.resources is capabilities.prompts is capabilities.completions is None


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: resource("no scheme"), "expected a scheme"),
        (lambda: resource("a://b")(lambda: 1), "got a lambda. Define it with def."),
        (lambda: prompt(cast("Any", 5)), "Expected a function with a name, got 5."),
        (lambda: resource("a://{b}/{b}"), "expected different names in braces"),
        (lambda: resource("a://{b c}"), "got 'a://{b c}'"),
        (lambda: server(resources=[guide, guide.tool]), "Use @resource"),
        (lambda: server(resources=[guide, _copy(guide)]), "have the URI 'guide://"),
        (lambda: server(resources=[resource("a://{x}")(print_it)]), "parameter for each name"),
        (lambda: server(prompts=[review, _other(review)]), "are named 'review'"),
        (lambda: server(prompts=[guide]), "Use @prompt"),
        (lambda: server(prompts=[prompt(complete={"x": list})(print_it)]), "unknown arguments"),
    ],
)
def test_what_cannot_be_served_is_refused(create: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        create()


def _copy(one: Resource) -> Resource:
    return Resource(one.uri, one.tool, name=one.name)


def _other(one: Prompt) -> Prompt:
    return Prompt(one.tool, name=one.name)


def print_it(text: str) -> str:
    """Print it."""
    return text


async def test_a_function_of_a_request_sees_the_request() -> None:
    @resource("who://am-i")
    def who(ctx: ToolContext[Any]) -> str:
        """Return the protocol version."""
        return ctx.context.protocol_version

    async with asyncio.timeout(BOUND), connected("auto", resources=who) as client:
        (content,) = (await client.read_resource("who://am-i")).contents
    assert content.text == "2026-07-28"


@ERAS
async def test_an_agent_is_a_tool_and_a_prompt(mode: Any) -> None:
    agent = Agent(
        "Tea Expert",
        instructions=lambda _context, own: f"You are {own.name}.",
        model=ScriptedModel(["Use water of 80 degrees."]),
        handoff_description="Knows tea.",
    )
    async with asyncio.timeout(BOUND), connected(mode, tools=[agent], prompts=agent) as client:
        (tool,) = (await client.list_tools()).tools
        answer = await client.call_tool(tool.name, {"input": "How hot?"})
        (listed,) = (await client.list_prompts()).prompts
        messages = (await client.get_prompt(listed.name, {"input": "How hot?"})).messages
    assert answer.content[0].text == "Use water of 80 degrees."
    assert (listed.name, listed.title, listed.description) == (
        tool.name,
        "Tea Expert",
        "Knows tea.",
    )
    assert [one.content.text for one in messages] == ["You are Tea Expert.", "How hot?"]


@pytest.mark.filterwarnings("ignore:logging:DeprecationWarning", "ignore:The logging")
@ERAS
async def test_notes_are_log_messages_for_clients_that_request_their_level(mode: Any) -> None:
    logged: list[tuple[str, str, str]] = []

    async def on_log(params: Any) -> None:
        logged.append((params.level, params.logger, params.data))

    @function_tool
    def brew(ctx: ToolContext[Any]) -> str:
        """Brew tea."""
        ctx.notify("heating", level="debug")
        ctx.notify("boiling", tag="kettle")
        ctx.notify("too hot", level="warning")
        return "tea"

    served = server(tools=[brew])
    sdk_client: Any = Client
    async with (
        asyncio.timeout(BOUND),
        sdk_client(served, mode=mode, logging_callback=on_log) as client,
    ):
        assert client.server_capabilities.logging is not None
        await client.call_tool("brew", {})
        assert logged == []
        if mode == "legacy":
            await client.session.set_logging_level("info")
            await client.call_tool("brew", {})
            await client.list_tools()
    if mode == "auto":
        async with (
            asyncio.timeout(BOUND),
            sdk_client(served, log_level="info", logging_callback=on_log) as client,
        ):
            await client.call_tool("brew", {})
            await client.list_tools()
    assert logged == [("info", "kettle", "boiling"), ("warning", "brew", "too hot")]
