"""Calls of tools with an `ArgumentStream`, which start while the model writes their arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import ToolCallItem
from agents_tools.errors import (
    ArgumentProblem,
    ModelBehaviorError,
    ToolCancelledError,
)
from agents_tools.events.kinds import RawResponseStreamEvent
from agents_tools.schema.problems import arguments_error, malformed_error
from agents_tools.text.json_stream import JsonObjectReader, Member
from agents_tools.tool.incoming import IncomingArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.events.base import Emit, Event
    from agents_tools.schema.arguments import Arguments
    from agents_tools.schema.function import StreamedParameters
    from agents_tools.tool.tool import FunctionTool

    Decode = Callable[[ToolCallItem], str]
    """Returns the arguments of a call in the schema of the tool."""

__all__ = ["CallWatcher", "StreamedCall"]


class StreamedCall:
    """A call that the model is writing, and that starts when enough of it has arrived.

    Args:
        item: The call, without arguments.
        tool: The tool.
        decode: Converts the arguments from the schema of the provider to that of the tool.
        start: Starts the call.

    Attributes:
        item: The call; when it starts, with the arguments that are known.
        incoming: The arguments that the body reads.
    """

    def __init__(
        self,
        item: ToolCallItem,
        tool: FunctionTool[..., Any],
        decode: Decode,
        start: Callable[[StreamedCall], None],
    ) -> None:
        self.item = item
        self._tool = tool
        self._decode = decode
        self._start = start
        self._parameters = cast("StreamedParameters", tool.streamed_parameters)
        self.incoming = IncomingArguments(set(self._parameters.texts.values()))
        self._reader: JsonObjectReader | None = JsonObjectReader(self._is_text)
        self._names: dict[str, str] = {}  # the keys of the tool by the keys of the provider
        self._members: list[str] = []
        self._arrived = set[str]()
        self._known: Arguments | None = None  # when the call has started

    def push(self, delta: str) -> None:
        """Read the next part of the arguments.

        Arguments that cannot be read are left to `complete`, which says what is wrong with them.
        """
        if self._reader is None:
            return
        try:
            parts = self._reader.push(delta)
        except ValueError:
            self._reader = None
            return
        has_begun = self._known is not None
        for part in parts:
            name = self._name_of(part.key)
            if isinstance(part, Member):
                self._members.append(part.text)
                self._arrived.add(self._parameters.others.get(name, name))
            else:
                has_begun = True
                self.incoming.push(self._parameters.texts[name], part.text)
            if has_begun and self._known is None and self._parameters.awaited <= self._arrived:
                self._begin()

    def _is_text(self, key: str) -> bool:
        return self._name_of(key) in self._parameters.texts

    def _name_of(self, key: str) -> str:
        """Return the key in the schema of the tool; a provider can have another one."""
        name = self._names.get(key)
        if name is None:
            decoded = self._decode(replace(self.item, arguments=json.dumps({key: ""})))
            name = self._names[key] = next(iter(json.loads(decoded)), key)
        return name

    def _begin(self) -> None:
        """Start the call, if the arguments that have arrived are valid."""
        item = replace(self.item, arguments="{" + ",".join(self._members) + "}")
        try:
            self._known = self._tool.source.parse_known(self._decode(item))
        except ModelBehaviorError:
            self._reader = None  # the call is answered with the error when it is complete
            return
        self.item = item
        self._start(self)

    def complete(self, item: ToolCallItem, truncation: str | None) -> None:
        """End the streams, with an error if the complete arguments are invalid.

        Args:
            item: The complete call.
            truncation: The message for the model if its response was cut off.
        """
        try:
            if truncation is not None:
                raise ModelBehaviorError(truncation)  # noqa: TRY301 - one way for all errors
            arguments = self._tool.source.parse(self._decode(item))
            values: Mapping[str, Any] = arguments.values()
            self._check(arguments, values)
        except Exception as error:  # noqa: BLE001 - a validator of the author can raise any error
            self.incoming.fail(error)
        else:
            self.incoming.complete(arguments, values)

    def _check(self, arguments: Arguments, values: Mapping[str, Any]) -> None:
        """Check that the body got the arguments that are complete now.

        Raises:
            ModelBehaviorError: It did not.
        """
        name, texts = self._tool.name, self._parameters.texts
        for parameter in texts.values():
            if not str(values[parameter]).startswith(self.incoming.text(parameter)):
                raise malformed_error(name, "value", "the text changed while it was written")
        known = cast("Arguments", self._known)
        ignored = {*texts, *known.created, *arguments.created}
        problems = [
            ArgumentProblem(
                path=(key,),
                expected=f"a place before {' and '.join(map(repr, texts))}",
                got="one after it, where it comes too late",
                kind="value",
            )
            for key, value in arguments.data.items()
            if key not in ignored and (key not in known.data or known.data[key] != value)
        ]
        if problems:
            raise arguments_error(name, problems)

    def abandon(self) -> None:
        """End the streams, because the response of the model ended before the call."""
        self.incoming.fail(
            ToolCancelledError(
                f"The response of the model ended before call {self.item.call_id!r} of tool "
                f"{self._tool.name!r} was complete."
            )
        )


class CallWatcher:
    """Passes the events of one response on, and gives its argument deltas to the streamed calls.

    Args:
        emit: Receives the events.
        open_call: Returns the streamed call for a call that the model begins to write; `None` for
            other calls.
    """

    def __init__(
        self, emit: Emit, open_call: Callable[[ToolCallItem], StreamedCall | None]
    ) -> None:
        self._emit = emit
        self._open_call = open_call
        self._calls: dict[str, StreamedCall] = {}

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        self._emit(event)
        raw: Any = event.data if isinstance(event, RawResponseStreamEvent) else None
        if not isinstance(raw, dict):
            return
        data = cast("dict[str, Any]", raw)
        match data.get("type"):
            case "response.function_call_arguments.delta":
                call = self._calls.get(str(data.get("call_id")))
                if call is not None:
                    call.push(str(data.get("delta", "")))
            case "response.output_item.added":
                item: Mapping[str, Any] = data.get("item") or {}
                if item.get("type") == "function_call" and item.get("call_id"):
                    self._open(str(item["call_id"]), str(item.get("name")))
            case "agents_tools.retry":  # a model repeats its own request
                for call in self._calls.values():
                    call.abandon()
                self._calls.clear()
            case _:
                pass

    def _open(self, call_id: str, name: str) -> None:
        call = self._open_call(ToolCallItem(call_id=call_id, name=name, arguments=""))
        if call is not None:
            self._calls[call_id] = call
