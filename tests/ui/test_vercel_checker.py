"""The checker rejects what `useChat` rejects, and what it silently shows wrong."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools.testing import VercelStreamError, assert_vercel, check_vercel

START: dict[str, Any] = {"type": "start", "messageId": "m"}
FINISH: dict[str, Any] = {"type": "finish", "finishReason": "stop"}
STEP = [{"type": "start-step"}]
STEP_END = [{"type": "finish-step"}]


def message(*chunks: dict[str, Any]) -> list[dict[str, Any]]:
    return [START, *STEP, *chunks, *STEP_END, FINISH]


def called(call_id: str = "c", **more: Any) -> dict[str, Any]:
    head = {"type": "tool-input-available", "toolCallId": call_id, "toolName": "add"}
    return {**head, "input": {}, **more}


def answered(call_id: str = "c", **more: Any) -> dict[str, Any]:
    return {"type": "tool-output-available", "toolCallId": call_id, "output": 3, **more}


def failed(call_id: str = "c", **more: Any) -> dict[str, Any]:
    return {"type": "tool-output-error", "toolCallId": call_id, "errorText": "no", **more}


def asked(call_id: str = "c", **more: Any) -> dict[str, Any]:
    return {"type": "tool-approval-request", "toolCallId": call_id, "approvalId": "a", **more}


WRITING = {"type": "tool-input-start", "toolCallId": "c", "toolName": "add"}
PIECE = {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{}"}
DENIED = {"type": "tool-output-denied", "toolCallId": "c"}
TEXT = [
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "Hi"},
    {"type": "text-end", "id": "t"},
]

GOOD: dict[str, list[dict[str, Any]]] = {
    "nothing but its ends": [START, FINISH],
    "text": message(*TEXT),
    "reasoning": message(
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": "Hm"},
        {"type": "reasoning-end", "id": "r"},
    ),
    "a call": message(WRITING, PIECE, called(), answered()),
    "a call without pieces": message(called(), answered()),
    "a null in a value": message(called(input=None), answered(output=None)),
    "outputs for now": message(called(), answered(preliminary=True), failed()),
    "invalid arguments": message(
        called(),
        {**WRITING, "type": "tool-input-error", "input": {}, "errorText": "no"},
    ),
    "data": message(
        {"type": "data-x", "id": "1", "data": {}},
        {"type": "data-x", "id": "1", "data": None},
        {"type": "data-log", "data": "line", "transient": True},
    ),
    "an error after the end": [START, FINISH, {"type": "error", "errorText": "no"}],
    "a break": [START, {"type": "abort"}, FINISH],
    "files": message({"type": "file", "url": "data:,", "mediaType": "text/plain"}),
}

BAD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no type": ([START, {"id": "t"}], "has a type"),
    "an unknown type": ([START, {"type": "tool-progress"}], "is known"),
    "an unknown field": (message({**TEXT[0], "more": 1}, *TEXT[1:]), "no unknown fields"),
    "no start": ([FINISH], "first chunk"),
    "nothing": ([], "first chunk"),
    "no finish": ([START], "ends with `finish`"),
    "two starts": ([START, START], "one `start`"),
    "more after finish": ([START, FINISH, *TEXT], "follows `finish`"),
    "more after an error": (
        [START, FINISH, {"type": "error", "errorText": "x"}, *TEXT],
        "follows an error",
    ),
    "text after abort": ([START, {"type": "abort"}, *TEXT], "follows `abort`"),
    "a null": (message({**TEXT[0], "providerMetadata": None}), "no null"),
    "a null as title": (message(called(title=None)), "no null"),
    "a null as the reason": ([START, {**FINISH, "finishReason": None}], "no null"),
    "a missing field": ([START, {"type": "text-start"}], "has its fields"),
    "a wrong type": ([START, {"type": "error", "errorText": 3}], "has its type"),
    "flat metadata": (message({**TEXT[0], "providerMetadata": {"a": 1}}), "has its type"),
    "a wrong reason": ([START, {**FINISH, "finishReason": "done"}], "finishReason"),
    "data without data": ([START, {"type": "data-x", "id": "1"}], "has its fields"),
    "a delta of no text": (message(TEXT[1]), "begins before it continues"),
    "the end of no text": (message(TEXT[2]), "begins before it continues"),
    "a text twice": (message(*TEXT, *TEXT), "used once"),
    "an open text": ([START, TEXT[0], FINISH], "ends before the message"),
    "a text beyond its step": (message(TEXT[0]), "ends before its step"),
    "a step in a step": ([START, *STEP, *STEP], "ends before the next"),
    "the end of no step": ([START, *STEP_END], "begins before it ends"),
    "an open step": ([START, *STEP, FINISH], "ends before the message"),
    "a piece of no input": (message(PIECE), "begins before it continues"),
    "a piece after the input": (message(called(), PIECE), "begins before it continues"),
    "an output of no call": (message(answered()), "input before its output"),
    "an error of no call": (message(failed()), "input before its output"),
    "an output while writing": (message(WRITING, answered()), "input before its output"),
    "an output twice": (message(called(), answered(), answered()), "one final output"),
    "a late preliminary": (
        message(called(), answered(), answered(preliminary=True)),
        "one final output",
    ),
    "an error after the output": (message(called(), answered(), failed()), "one final output"),
    "an id twice": (message(called(), answered(), called()), "used once"),
    "an id begun twice": (message(WRITING, WRITING), "used once"),
    "another tool": (message(WRITING, called(toolName="sub")), "keeps its tool"),
    "a call without output": (message(called()), "has an output"),
    "only for now": (message(called(), answered(preliminary=True)), "has an output"),
    "a call half written": (message(WRITING), "has an output"),
    "dynamic on one": (message(called(dynamic=True), answered()), "dynamic, or none"),
    "dynamic on the other": (message(called(), answered(dynamic=True)), "dynamic, or none"),
    "an input over two steps": (
        [START, *STEP, WRITING, *STEP_END, *STEP, called(), answered(), *STEP_END, FINISH],
        "written in one step",
    ),
}

BAD_IN_7: dict[str, tuple[list[dict[str, Any]], str]] = {
    "denied but not asked": (message(called(), DENIED), "with an approval request is denied"),
    "asked without a call": (message(asked()), "has an input and no output"),
    "asked after the output": (message(called(), answered(), asked()), "has an input and no"),
    "asked twice": (message(called(), asked(), called("d"), asked("d")), "used once"),
    "answered but not asked": (
        message({"type": "tool-approval-response", "approvalId": "a", "approved": True}),
        "approval is requested before",
    ),
    "an output taken back": (message(called(), answered(), {"type": "reset-step"}), "is reset"),
}


@pytest.mark.parametrize("version", [5, 6, 7])
@pytest.mark.parametrize("name", GOOD)
def test_accepts_what_clients_accept(name: str, version: int) -> None:
    check_vercel(GOOD[name], version)


@pytest.mark.parametrize("version", [5, 6, 7])
@pytest.mark.parametrize("name", BAD)
def test_rejects_what_clients_reject_or_show_wrong(name: str, version: int) -> None:
    chunks, rule = BAD[name]
    with pytest.raises(VercelStreamError, match=f"Broken law: .*{rule}"):
        check_vercel(chunks, version)


@pytest.mark.parametrize("name", BAD_IN_7)
def test_rejects_what_only_newer_clients_accept(name: str) -> None:
    chunks, rule = BAD_IN_7[name]
    with pytest.raises(VercelStreamError, match=f"Broken law: .*{rule}"):
        check_vercel(chunks, 7)


@pytest.mark.parametrize(
    ("chunk", "since"),
    [
        (asked(), 6),
        (DENIED, 6),
        ({"type": "reset-step"}, 7),
        ({"type": "tool-approval-response", "approvalId": "a", "approved": True}, 7),
        ({"type": "custom", "kind": "a.b"}, 7),
        ({"type": "reasoning-file", "url": "data:,", "mediaType": "a/b"}, 7),
        ({"type": "steering-message", "id": "s", "parts": []}, 7),
    ],
)
def test_checks_the_first_version_of_each_chunk(chunk: dict[str, Any], since: int) -> None:
    """One chunk that its version does not know makes a client drop the whole stream."""
    for version in range(5, since):
        with pytest.raises(VercelStreamError, match="the version knows"):
            check_vercel([START, chunk], version)


@pytest.mark.parametrize(
    ("reason", "versions"),
    [("interrupted", {7}), ("unknown", {5}), ("stop", {5, 6, 7}), ("tool-calls", {5, 6, 7})],
)
def test_checks_the_finish_reasons_of_each_version(reason: str, versions: set[int]) -> None:
    for version in (5, 6, 7):
        chunks = [START, {**FINISH, "finishReason": reason}]
        if version in versions:
            check_vercel(chunks, version)
        else:
            with pytest.raises(VercelStreamError, match="finishReason is known"):
                check_vercel(chunks, version)


def test_calls_can_stay_open_during_an_approval() -> None:
    check_vercel(message(called("outer"), called(), asked()), 7)
    question = {"approvalId": "a", "callId": "c", "state": "requested"}
    chunks = message(called(), {"type": "data-agents-tool-approval", "id": "a", "data": question})
    check_vercel(chunks, 5)


def test_continues_an_earlier_response() -> None:
    before = message(called(), asked())
    check_vercel([START, answered(), FINISH], 7, before=before)
    check_vercel([START, DENIED, FINISH], 6, before=before)
    with pytest.raises(VercelStreamError, match="keeps its id"):
        check_vercel([{**START, "messageId": "other"}, FINISH], 7, before=before)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("data: {}\r\n\r\n", "LF"),
        ("data: {}\n", "empty line"),
        ("data: {\n\n", "is JSON"),
        ("data: \n\n", "is JSON"),
        ("data: NaN\n\n", "is JSON"),
        ("data: []\n\n", "is an object"),
        ("data: {}\ndata: {}\n\n", "one line"),
        ('data: {"type":"start"}\n\ndata: {"type":"finish"}\n\n', r"\[DONE\]"),
        ('data: {"type":"start"}\n\ndata: [DONE]\n\ndata: {"type":"finish"}\n\n', r"\[DONE\]"),
    ],
)
def test_parses_frames_strictly(text: str, rule: str) -> None:
    with pytest.raises(VercelStreamError, match=rule):
        check_vercel([text], 7)


def test_accepts_comments_and_ids_between_frames() -> None:
    """A heartbeat is a comment: an empty `data:` would end the stream."""
    text = ':\n\nid: 1\ndata: {"type":"start"}\n\n: hi\n\ndata: {"type":"finish"}\n\n'
    check_vercel([text, "data: [DONE]\n\n"], 7)


def test_an_error_names_the_rule_the_position_and_the_chunk() -> None:
    with pytest.raises(VercelStreamError) as caught:
        assert_vercel([START, {"type": "text-delta", "id": "t", "delta": "x"}], 7)
    assert caught.value.rule == "a text begins before it continues"
    assert caught.value.index == 1
    assert caught.value.chunk == {"type": "text-delta", "id": "t", "delta": "x"}
    assert "chunk 1" in str(caught.value)


def test_an_unknown_version_is_an_error_of_the_test() -> None:
    with pytest.raises(ValueError, match="5, 6 or 7"):
        check_vercel([START], 4)
