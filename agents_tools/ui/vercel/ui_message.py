"""Build the message that a page of the Vercel AI SDK shows from the chunks of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agents_tools.ui.vercel.text import Chunk

__all__ = ["UIMessageBuilder"]

_INPUT_FIELDS: Final = ("toolName", "input", "output", "errorText", "rawInput", "preliminary")
"""The fields of a tool part that each chunk about its state replaces."""


class UIMessageBuilder:
    """Builds one assistant message as the SDK does, so that a page can load it.

    It supports the chunks of `VercelEncoder`, whose tool parts are all dynamic. The source of the
    rules is `processUIMessageStream` of `ai` 7.

    Args:
        message: The message that the stream continues; by default a new one.
    """

    def __init__(self, message: Mapping[str, Any] | None = None) -> None:
        given = message or {}
        self._id: str = given.get("id", "")
        self._metadata: dict[str, Any] = dict(given.get("metadata") or {})
        self._parts: list[Chunk] = [dict(part) for part in given.get("parts", ())]
        self._open: dict[str, Chunk] = {}

    def message(self) -> Chunk | None:
        """Return the message; `None` if the page would show nothing."""
        if all(part["type"] == "step-start" for part in self._parts):
            return None
        metadata = {"metadata": self._metadata} if self._metadata else {}
        return {"id": self._id, "role": "assistant", **metadata, "parts": self._parts}

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Apply the next chunks."""
        for chunk in chunks:
            self._add(chunk)

    def _add(self, chunk: Chunk) -> None:
        match chunk["type"]:
            case "start" | "finish":
                self._id = chunk.get("messageId", self._id)
                self._metadata |= chunk.get("messageMetadata", {})
            case "start-step":
                self._parts.append({"type": "step-start"})
            case "reset-step":
                del self._parts[self._step_start :]
                self._open.clear()
            case "text-start" | "reasoning-start":
                self._begin_text(chunk)
            case "text-delta" | "reasoning-delta":
                self._open[chunk["id"]]["text"] += chunk["delta"]
            case "text-end" | "reasoning-end":
                self._open.pop(chunk["id"])["state"] = "done"
            case "file" | "source-url":
                self._parts.append(dict(chunk))
            case str() as kind if kind.startswith("data-"):
                self._set_data(chunk)
            case str() as kind if kind.startswith("tool-"):
                self._set_call(kind, chunk)
            case _:  # the end of a step, and of the stream
                pass

    @property
    def _step_start(self) -> int:
        """The index of the first part of the current step."""
        marks = [n for n, part in enumerate(self._parts) if part["type"] == "step-start"]
        return marks[-1] + 1 if marks else 0

    def _begin_text(self, chunk: Chunk) -> None:
        kind = chunk["type"].removesuffix("-start")
        own_id = {"id": chunk["id"]} if kind == "reasoning" else {}
        part = self._open[chunk["id"]] = {"type": kind, **own_id, "text": "", "state": "streaming"}
        self._parts.append(part)

    def _set_data(self, chunk: Chunk) -> None:
        """Add a data part, or replace the one with the same id."""
        if chunk.get("transient"):
            return
        for part in self._parts:
            if part["type"] == chunk["type"] and part.get("id") == chunk["id"]:
                part["data"] = chunk["data"]
                return
        self._parts.append(dict(chunk))

    # --- calls

    def _set_call(self, kind: str, chunk: Chunk) -> None:
        match kind:
            case "tool-input-start":
                self._set_input(chunk, "input-streaming")
            case "tool-input-available":
                self._set_input(chunk, "input-available", input=chunk["input"])
            case "tool-input-error":
                error = {"input": chunk["input"], "errorText": chunk["errorText"]}
                self._set_input(chunk, "output-error", **error)
            case "tool-output-available":
                fields = {key: chunk[key] for key in ("output", "preliminary") if key in chunk}
                self._end_call(chunk, "output-available", **fields)
            case "tool-output-error":
                self._end_call(chunk, "output-error", errorText=chunk["errorText"])
            case "tool-output-denied":
                self._call(chunk["toolCallId"])["state"] = "output-denied"
            case "tool-approval-request":
                part = self._call(chunk["toolCallId"])
                part["state"], part["approval"] = "approval-requested", {"id": chunk["approvalId"]}
            case "tool-approval-response":
                self._set_decision(chunk)
            case _:  # a delta of the input, which the complete input replaces
                pass

    def _set_input(self, chunk: Chunk, state: str, **fields: Any) -> None:
        """Add the part of a call, or update it if it is in the current step."""
        call_id = chunk["toolCallId"]
        step = self._parts[self._step_start :]
        part = next((one for one in step if one.get("toolCallId") == call_id), None)
        if part is None:
            part = {"type": "dynamic-tool", "toolCallId": call_id}
            self._parts.append(part)
        _update(part, chunk, state, toolName=chunk["toolName"], **fields)

    def _end_call(self, chunk: Chunk, state: str, **fields: Any) -> None:
        part = self._call(chunk["toolCallId"])
        known = {key: part[key] for key in ("toolName", "input") if key in part}
        _update(part, chunk, state, **known, **fields)

    def _set_decision(self, chunk: Chunk) -> None:
        asked = {"id": chunk["approvalId"]}
        part = next(one for one in self._parts if one.get("approval", {}).get("id") == asked["id"])
        decision = {key: chunk[key] for key in ("approved", "reason") if key in chunk}
        part["state"], part["approval"] = "approval-responded", asked | decision

    def _call(self, call_id: str) -> Chunk:
        """Return the newest part of a call; the encoder begins each call before its end."""
        return next(part for part in reversed(self._parts) if part.get("toolCallId") == call_id)


def _update(part: Chunk, chunk: Chunk, state: str, **fields: Any) -> None:
    for name in _INPUT_FIELDS:
        part.pop(name, None)
    if "providerExecuted" in chunk:
        part["providerExecuted"] = chunk["providerExecuted"]
    part.update(state=state, **fields)
