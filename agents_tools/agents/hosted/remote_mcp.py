"""A remote MCP server whose tools the provider calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools import policies
from agents_tools.agents.hosted.base import (
    HostedTool,
    check_callback,
    copy_config,
    create_local_tool,
    json_options,
)
from agents_tools.agents.hosted.call_arguments import read_object
from agents_tools.errors import ToolDeniedError, UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ApprovalCallback", "HostedMCPTool", "MCPApprovalRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPApprovalRequest:
    """A request of the provider for the approval of a call.

    Attributes:
        server_label: The label of the server.
        name: The name of the tool.
        arguments: The arguments, as JSON text.
        call_id: The id of the request.
    """

    server_label: str
    name: str
    arguments: str
    call_id: str


ApprovalCallback: TypeAlias = Callable[[MCPApprovalRequest], Any]
"""Returns a boolean, or `{"approve": …, "reason": "…"}`; sync or async."""


@dataclass(frozen=True, eq=False, repr=False)
class HostedMCPTool(HostedTool):
    """The tools of a remote MCP server, called by the provider.

    Where the configuration requires approval, a request goes to `on_approval_request`. Without
    this callback, the request is one of the `interruptions` of the run, like any call that needs
    approval.

    Attributes:
        tool_config: The definition for the Responses API: `server_label`, and one of `server_url`,
            `connector_id` and `tunnel_id`.
        on_approval_request: Decides about one call.

    Raises:
        UserError: The definition has the wrong form.
    """

    tool_config: Mapping[str, Any]
    on_approval_request: ApprovalCallback | None = None

    def __post_init__(self) -> None:
        copy_config(self, "mcp", required="server_label")
        label = self.tool_config["server_label"]
        if not isinstance(label, str):
            raise UserTypeError(
                "HostedMCPTool(tool_config=...) has a wrong 'server_label': expected a string, "
                f"got {type_with_article(label)}."
            )
        if not any(self.tool_config.get(key) for key in _SERVER_KEYS):
            raise UserValueError(
                "HostedMCPTool(tool_config=...) names no server. Add one of "
                f"{', '.join(_SERVER_KEYS)}."
            )
        check_callback(self, "on_approval_request", "an MCPApprovalRequest")

    @property
    def name(self) -> str:
        """The label of the server."""
        return cast("str", self.tool_config["server_label"])

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(**{"type": "mcp", **self.tool_config})

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        tool = create_local_tool(
            "hosted_mcp_approval", "Approves calls of a remote server.", self._approve
        )
        return tool if self.on_approval_request is not None else policies.needs_approval()(tool)

    @property
    def local(self) -> FunctionTool[..., Any]:
        """The function tool that answers approval requests."""
        return self._local

    async def _approve(self, context: ToolContext[Any], args_json: str) -> str:
        if self.on_approval_request is None:
            return "approve"  # the policy `needs_approval` has asked a person before this call
        arguments = read_object(args_json)
        decision = self.on_approval_request(
            MCPApprovalRequest(
                server_label=self.name,
                name=str(arguments.get("name", "")),
                arguments=str(arguments.get("arguments") or "{}"),
                call_id=context.tool_call_id,
            )
        )
        if hasattr(decision, "__await__"):
            decision = await decision
        reason: Any = None
        if isinstance(decision, Mapping):
            answer = cast("Mapping[str, Any]", decision)
            decision, reason = answer.get("approve"), answer.get("reason")
        if decision is True:
            return "approve"
        raise ToolDeniedError(str(reason or "The application refused this call."))


_SERVER_KEYS = ("server_url", "connector_id", "tunnel_id")
