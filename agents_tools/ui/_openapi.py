"""The OpenAPI document of `sse.app`, version 3.1 of the specification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from agents_tools.events.registry import event_json_schema
from agents_tools.persistence.protocol import RunStatus
from agents_tools.ui.ndjson import CONTENT_TYPE as NDJSON

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agents_tools.tool.tool import FunctionTool

__all__ = ["openapi_document"]

Json: TypeAlias = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
_YES_OR_NO: Final[Json] = {"type": "boolean"}
_ANY_OBJECT: Final[Json] = {"type": "object"}
_TIME: Final[Json] = {"type": "string", "format": "date-time"}


def openapi_document(
    tools: Iterable[FunctionTool[..., Any]], *, serves_agent: bool, has_auth: bool
) -> Json:
    """Return the document of an app.

    Args:
        tools: The tools of the app.
        serves_agent: Whether the app serves an agent, and not the tools themselves.
        has_auth: Whether requests need a bearer token.
    """
    from agents_tools._package import __version__

    security: Json = {"security": [{"token": []}]} if has_auth else {}
    schemes: Json = {"token": {"type": "http", "scheme": "bearer"}} if has_auth else {}
    start = _agent_start() if serves_agent else _tool_start(tools)
    return {
        "openapi": "3.1.0",
        "info": {"title": "agents-tools", "version": __version__},
        "servers": [{"url": "."}],  # the folder of the document
        **security,
        "paths": _paths(),
        "components": {
            "schemas": {**_SCHEMAS, "StartRun": start, **_event_schemas()},
            "responses": {"Error": _content("An error.", _ref("Error"))},
            "parameters": {"run": _path_parameter("id", "The id of the run.")},
            **({"securitySchemes": schemes} if schemes else {}),
        },
    }


# --- schemas


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Mapping[str, Json], **optional: Json) -> Json:
    properties = {**required, **optional}
    shape: Json = {"type": "object", "properties": properties, "required": list(required)}
    return shape if required else {key: value for key, value in shape.items() if key != "required"}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


_STATUS: Final[Json] = {"enum": ["orphaned", *get_args(RunStatus)]}
_APPROVAL: Final = _object(
    {"call_id": _TEXT, "path": _list(_TEXT), "name": _TEXT, "arguments": _TEXT}
)
_RUN: Final = _object({
    "run_id": _TEXT,
    "thread_id": _TEXT_OR_NULL,
    "kind": {"enum": ["agent", "tool"]},
    "agent": _TEXT,
    "status": _STATUS,
    "started": _TIME,
    "ended": _or_null(_TIME),
    "last_event_id": {"type": "integer"},
    "output": {},
    "usage": _or_null(_ANY_OBJECT),
    "error": _TEXT_OR_NULL,
    "approvals": _list(_ref("Approval")),
})  # fmt: skip
_DECISION: Final = _object(
    {"call_id": _TEXT, "approve": _YES_OR_NO},
    path=_list(_TEXT),
    message={**_TEXT_OR_NULL, "description": "The reason of a rejection, for the model."},
    arguments={"type": ["object", "string", "null"], "description": "Changed arguments."},
    always={"type": ["boolean", "null"], "description": "Whether later calls need no approval."},
)
_TOOL: Final = _object({
    "name": _TEXT,
    "description": _TEXT,
    "schema": _ANY_OBJECT,
    "annotations": _or_null(_ANY_OBJECT),
})  # fmt: skip
_ERROR: Final = _object({"error": _object({"status": {"type": "integer"}, "message": _TEXT})})
_TARGET: Final = _object({"kind": {"enum": ["agent", "tools"]}}, name=_TEXT)
_INFO: Final = _object({
    "name": _TEXT,
    "version": _TEXT,
    "target": _TARGET,
    "on_disconnect": {"enum": ["cancel", "detach"]},
})  # fmt: skip
_SCHEMAS: Final[Json] = {
    "Approval": _APPROVAL,
    "Decision": _DECISION,
    "Error": _ERROR,
    "Info": _INFO,
    "Run": _RUN,
    "Tool": _TOOL,
}


def _event_schemas() -> Json:
    """Return `Event` and the schemas of all events as components."""
    text = json.dumps(event_json_schema()).replace('"#/$defs/', '"#/components/schemas/')
    event: Json = json.loads(text)
    classes: Json = event.pop("$defs")
    del event["$schema"]
    return {**classes, "Event": event}


def _agent_start() -> Json:
    user_input: Json = {
        "description": "A message of the user, or items of a conversation.",
        "anyOf": [{"type": "string", "minLength": 1}, {**_list(_ANY_OBJECT), "minItems": 1}],
    }
    return _closed(_object({"input": user_input}, **_ids()))


def _tool_start(tools: Iterable[FunctionTool[..., Any]]) -> Json:
    """Return one alternative for each tool, with the schema of its arguments."""
    calls: list[Json] = []
    for tool in tools:
        fields = {"tool": {"const": tool.name}, "arguments": _without_definitions(tool.json_schema)}
        needs_arguments = bool(tool.json_schema.get("required"))
        required = fields if needs_arguments else {"tool": fields["tool"]}
        optional = {} if needs_arguments else {"arguments": fields["arguments"]}
        calls.append(_closed(_object(required, **optional, **_ids())))
    return {"oneOf": calls}


def _without_definitions(schema: Mapping[str, Any]) -> Json:
    """Return a schema of its own: references in it start at its root, not at the document."""
    return _ANY_OBJECT if "$defs" in schema else dict(schema)


def _ids() -> Json:
    return {
        "run_id": {**_TEXT_OR_NULL, "description": "The id of the run; a new one by default."},
        "thread_id": {**_TEXT_OR_NULL, "description": "The conversation of the run."},
    }


def _closed(schema: Json) -> Json:
    return {**schema, "additionalProperties": False}


# --- operations


def _paths() -> Json:
    run = {"parameters": [{"$ref": "#/components/parameters/run"}]}
    call = {"parameters": [*run["parameters"], _path_parameter("call_id", "The id of the call.")]}
    reason = _closed(_object({}, reason=_TEXT_OR_NULL))
    cancelled = _object({"cancelled": _YES_OR_NO, "status": _STATUS})
    decisions = _closed(_object({"decisions": {**_list(_ref("Decision")), "minItems": 1}}))
    decided = _object({"ok": _YES_OR_NO, "status": _STATUS, "approvals": _list(_ref("Approval"))})
    resumed = _object({"ok": _YES_OR_NO, "status": _STATUS})
    listed = _object({"runs": _list(_ref("Run")), "more": _YES_OR_NO})
    tools = _object({"tools": _list(_ref("Tool"))})
    return {
        "/": {"get": _operation("getInfo", "Describe the app.", _ref("Info"))},
        "/tools": {"get": _operation("listTools", "List the tools.", tools)},
        "/runs": {
            "post": _start_operation(),
            "get": _operation("listRuns", "List the newest runs.", listed, parameters=[_LIMIT]),
        },
        "/runs/{id}": {**run, "get": _operation("getRun", "Return a run.", _ref("Run"))},
        "/runs/{id}/events": {**run, "get": _watch_operation()},
        "/runs/{id}/cancel": {
            **run,
            "post": _operation("cancelRun", "Cancel a run.", cancelled, reason),
        },
        "/runs/{id}/calls/{call_id}/cancel": {
            **call,
            "post": _operation("cancelCall", "Cancel one call; the run continues.", cancelled),
        },
        "/runs/{id}/approvals": {
            **run,
            "post": _operation(
                "decideCalls", "Decide about waiting calls.", decided, decisions, True
            ),
        },
        "/runs/{id}/resume": {
            **run,
            "post": _operation("resumeRun", "Continue a run without a process.", resumed),
        },
    }


def _operation(
    name: str,
    summary: str,
    result: Json,
    body: Json | None = None,
    is_required: bool = False,
    **more: Any,
) -> Json:
    given = {"requestBody": _body(body, is_required)} if body is not None else {}
    responses = {"200": _content("The result.", result), **_errors()}
    return {"operationId": name, "summary": summary, **more, **given, "responses": responses}


def _start_operation() -> Json:
    prefer = {"name": "Prefer", "in": "header", "schema": {"enum": ["respond-async"]}}
    return {
        "operationId": "startRun",
        "summary": "Start a run, and stream its events or, on request, return at once.",
        "parameters": [prefer],
        "requestBody": _body(_ref("StartRun"), True),
        "responses": {
            "200": _events("The events of the run, up to its end or to a waiting call."),
            "202": _content("The run, for `Prefer: respond-async`.", _ref("Run")),
            **_errors(),
        },
    }


def _watch_operation() -> Json:
    last = {"schema": _TEXT, "description": "The id of the last event that the client has."}
    return {
        "operationId": "watchRun",
        "summary": "Stream the events of a run, past ones first.",
        "parameters": [
            {"name": "after", "in": "query", **last},
            {"name": "Last-Event-ID", "in": "header", **last},
        ],
        "responses": {
            "200": _events("The events of the run."),
            "204": {"description": "There are no more events."},
            **_errors(),
        },
    }


_LIMIT: Final[Json] = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": 100},
}


def _path_parameter(name: str, description: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": _TEXT,
    }


def _body(schema: Json, is_required: bool) -> Json:
    return {"required": is_required, "content": {"application/json": {"schema": schema}}}


def _content(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _events(description: str) -> Json:
    """Return a response with events; `x-item-schema` is the schema of each one."""
    stream = {"schema": _TEXT, "x-item-schema": _ref("Event")}
    return {"description": description, "content": {"text/event-stream": stream, NDJSON: stream}}


def _errors() -> Json:
    return {"default": {"$ref": "#/components/responses/Error"}}
