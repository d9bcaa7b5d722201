"""The requests that a server answers besides those for tools, in both versions of the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.server.requests import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.mcp.server.progress import Report
    from agents_tools.mcp.server.prompts import PromptHandlers
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.mcp.server.resources import ResourceHandlers

    Answer: TypeAlias = Callable[
        [dict[str, Any], MCPRequest, Report | None, Any], Awaitable[dict[str, Any]]
    ]

__all__ = ["Feature", "features_of"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One kind of request.

    Attributes:
        option: The option of the server class of the SDK 2.
        request: The name of the request type.
        result: The name of the result type.
        answer: Returns the result for params, request, progress and questions.
        subscribes: Whether it begins or ends a subscription; `None` for other requests.
    """

    option: str
    request: str
    result: str
    answer: Answer
    subscribes: bool | None = None


def features_of(
    resources: ResourceHandlers | None, prompts: PromptHandlers | None
) -> list[Feature]:
    """Return the requests that resources and prompts make possible."""
    features: list[Feature] = []
    if resources is not None:
        features += _resource_features(resources)
    if prompts is not None:
        features += _prompt_features(prompts)
    sources = [one for one in (resources, prompts) if one is not None and one.has_completion]
    if sources:
        complete = partial(_complete, resources, prompts)
        features.append(Feature("on_completion", "CompleteRequest", "CompleteResult", complete))
    return features


def _resource_features(resources: ResourceHandlers) -> list[Feature]:
    async def listed(params: dict[str, Any], *_: Any, templates: bool) -> dict[str, Any]:
        return await resources.list(params.get("cursor"), templates=templates)

    async def read(params: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return await resources.read(str(params.get("uri")), *rest)

    async def subscribed(*_: Any) -> dict[str, Any]:
        return {}

    return [
        Feature(
            "on_list_resources",
            "ListResourcesRequest",
            "ListResourcesResult",
            partial(listed, templates=False),
        ),
        Feature(
            "on_list_resource_templates",
            "ListResourceTemplatesRequest",
            "ListResourceTemplatesResult",
            partial(listed, templates=True),
        ),
        Feature("on_read_resource", "ReadResourceRequest", "ReadResourceResult", read),
        Feature("on_subscribe_resource", "SubscribeRequest", "EmptyResult", subscribed, True),
        Feature("on_unsubscribe_resource", "UnsubscribeRequest", "EmptyResult", subscribed, False),
    ]


def _prompt_features(prompts: PromptHandlers) -> list[Feature]:
    async def listed(params: dict[str, Any], *_: Any) -> dict[str, Any]:
        return await prompts.list(params.get("cursor"))

    async def get(params: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return await prompts.get(str(params.get("name")), params.get("arguments"), *rest)

    return [
        Feature("on_list_prompts", "ListPromptsRequest", "ListPromptsResult", listed),
        Feature("on_get_prompt", "GetPromptRequest", "GetPromptResult", get),
    ]


async def _complete(
    resources: ResourceHandlers | None,
    prompts: PromptHandlers | None,
    params: dict[str, Any],
    *_: Any,
) -> dict[str, Any]:
    """Return the result of `completion/complete`."""
    reference, argument = an_object(params.get("ref")), an_object(params.get("argument"))
    is_prompt = reference.get("type") == "ref/prompt"
    target = str(reference.get("name") if is_prompt else reference.get("uri"))
    source = prompts if is_prompt else resources
    completer = None if source is None else await source.completer(target)
    if completer is None:
        raise RequestError(f"There is nothing to complete: {target!r:.200} does not exist.")
    others = an_object(an_object(params.get("context")).get("arguments"))
    typed = str(argument.get("value") or "")
    completion = await completer.complete(str(argument.get("name")), typed, others)
    return {"completion": completion}
