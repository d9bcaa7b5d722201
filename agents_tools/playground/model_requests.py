"""The requests to the models of runs: their tokens, and the prompts that this process has sent."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.config import RunHooks, observe_runs
from agents_tools.errors import EventStoreError
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.persistence.filter import EventFilter
from agents_tools.playground.attachments import item_without_data
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.call import RunScope
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.content.items import Item
    from agents_tools.persistence import RunStore
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = ["ModelRequests"]

_MAX_RUNS = 50
_MAX_PROMPTS = 200
"""The largest number of prompts of one run."""
_RECORDS = EventFilter(types=(RunRecordEvent.type,))


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A request that this process has sent.

    Attributes:
        path: The ids of the calls around the run that has sent it.
        turn: The number of the turn in that run.
        sent: The time, in seconds since 1970.
        agent: The name of the agent.
        instructions: The system prompt.
        input: The conversation as JSON, without the data of files.
        tools: The tools that the model received.
        settings: The settings of the model.
    """

    path: tuple[str, ...]
    turn: int
    sent: float
    agent: str
    instructions: str
    input: tuple[dict[str, Any], ...]
    tools: tuple[Any, ...]
    settings: Any


class ModelRequests:
    """The requests to the models of runs.

    The usage of a request is read from the log of its run. Prompts are in memory only: they are
    neither stored nor published as events.

    Args:
        store: The store of the runs.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._prompts: OrderedDict[str, list[_Prompt]] = OrderedDict()
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """Start to keep prompts."""
        self._stop = observe_runs(_PromptHooks(self))

    def close(self) -> None:
        """Stop keeping prompts."""
        if self._stop is not None:
            self._stop()

    def add(self, run_id: str, prompt: _Prompt) -> None:
        """Keep the prompt of a request of a run, or of a run inside it."""
        known = self._prompts.setdefault(run_id, [])
        if len(known) < _MAX_PROMPTS:
            known.append(prompt)
        while len(self._prompts) > _MAX_RUNS:
            self._prompts.popitem(last=False)

    def forget(self, run_id: str) -> None:
        """Delete the prompts of a run."""
        self._prompts.pop(run_id, None)

    def prompt(self, run_id: str, number: int) -> dict[str, Any] | None:
        """Return a prompt as JSON, with secrets masked.

        Args:
            run_id: The run.
            number: The number that `of_run` returns.

        Returns:
            The prompt; `None` if it is not in memory.
        """
        prompts = self._prompts.get(run_id, [])
        if not 0 <= number < len(prompts):
            return None
        prompt = prompts[number]
        return {
            "agent": prompt.agent,
            "instructions": release_text(prompt.instructions, to="program", patterns=True),
            "input": release_json(list(prompt.input), to="program", patterns=True),
            "tools": [_tool_json(tool) for tool in prompt.tools],
            "settings": _settings_json(prompt.settings),
        }

    async def of_run(self, run_id: str, kind: str = "agent") -> list[dict[str, Any]]:
        """Return the requests of a run and of the runs inside it as JSON, oldest first.

        Each one has the `path` of its run, the number of its `turn`, the `model` and the `usage` of
        the response (`None` until it has arrived), the time when it was `sent` (`None` if another
        process has sent it) and the number of its `prompt` (`None` if it is not in memory).

        Args:
            run_id: The run.
            kind: Whether an agent or a tool runs. The call of a tool itself needs no model.
        """
        found: list[dict[str, Any]] = []
        waiting: dict[tuple[tuple[str, ...], int], list[int]] = {}
        for number, prompt in enumerate(self._prompts.get(run_id, [])):
            waiting.setdefault((prompt.path, prompt.turn), []).append(number)
            found.append(
                {
                    "path": list(prompt.path),
                    "turn": prompt.turn,
                    "agent": prompt.agent,
                    "sent": prompt.sent,
                    "prompt": number,
                    "model": None,
                    "usage": None,
                }
            )
        earlier: list[dict[str, Any]] = []
        for record in await self._responses(run_id):
            data: Any = record.data
            response = data["response"]
            facts = {
                "model": response.get("model"),
                "usage": response.get("usage"),
                "finish_reason": response.get("finish_reason"),
            }
            numbers = waiting.get((record.path, data["turn"]))
            if numbers:
                # A turn that failed was repeated with the same number: the last request has the
                # response, unless several runs inside one call have turns of this number.
                number = numbers.pop(0) if len(numbers) == 1 else numbers.pop()
                found[number] |= facts
            else:
                sent = {"path": list(record.path), "turn": data["turn"], "agent": None}
                earlier.append({**sent, "sent": None, "prompt": None, **facts})
        return [one for one in earlier + found if one["path"] or kind == "agent"]

    async def _responses(self, run_id: str) -> list[RunRecordEvent]:
        log = self._store.log(run_id)
        try:
            records = await log.read(where=_RECORDS)
        except EventStoreError:
            return []
        finally:
            log.close()
        known = [record for record in records if isinstance(record, RunRecordEvent)]
        return [record for record in known if record.name == "model_response"]


class _PromptHooks(RunHooks[Any]):
    def __init__(self, requests: ModelRequests) -> None:
        self._requests = requests

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Any,
        system_prompt: str,
        input_items: Sequence[Item],
    ) -> None:
        """Keep the prompt."""
        scope = cast("RunScope", call_of(cast("Any", context)))
        scopes = [one for one in scope.ancestors if isinstance(one, RunScope)]
        prompt = _Prompt(
            path=scope.path,
            turn=scope.run.turns,
            sent=time.time(),
            agent=agent.name,
            instructions=system_prompt,
            input=tuple(map(item_without_data, input_items)),
            tools=scope.run.offered_tools,
            settings=agent.model_settings,
        )
        self._requests.add(str(scopes[-1].run_id), prompt)


def _tool_json(tool: Any) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": release_text(str(getattr(tool, "description", "") or "")),
        "parameters": getattr(tool, "params_json_schema", None),
    }


def _settings_json(settings: Any) -> dict[str, Any]:
    """Return settings as JSON, without headers and fields that can have keys of providers."""
    if settings is None:
        return {}
    given = {one.name: getattr(settings, one.name) for one in fields(settings)}
    return {
        name: value
        for name, value in given.items()
        if value is not None and not name.startswith("extra_")
    }
