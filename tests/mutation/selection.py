"""Which tests are asked about which module: those at the door of its part, and quick."""

from __future__ import annotations

_SCHEMA = (
    "tests/test_arguments_edges.py",
    "tests/test_schema_edges.py",
    "tests/test_unknown_keys.py",
    "tests/test_values_edges.py",
    "tests/test_schema.py",
    "tests/test_arguments.py",
    "tests/test_strict.py",
    "tests/test_class_faults.py",
    "tests/test_definition.py",
    "tests/test_documented_classes.py",
    "tests/test_invoke.py",
    "tests/test_outputs.py",
    "tests/wire/test_compact.py",
    "tests/wire/test_decode.py",
    "tests/wire/test_project.py",
    "tests/wire/test_providers.py",
)
_WIRE = (
    "tests/wire",
    "tests/test_wire_edges.py",
    "tests/test_schema_edges.py",
    "tests/test_schema.py",
    "tests/test_strict.py",
    "tests/test_class_faults.py",
    "tests/test_unknown_keys.py",
    "tests/export",
)
_STREAM = (
    "tests/test_channel.py",
    "tests/test_stream.py",
    "tests/test_stream_edges.py",
    "tests/test_stream_faults.py",
    "tests/test_streaming.py",
    "tests/test_events.py",
    "tests/test_event_types.py",
    "tests/test_laws.py",
    "tests/test_invoke.py",
    "tests/testing_kit",
)
_LOOP = (
    "tests/test_runner.py",
    "tests/test_approvals.py",
    "tests/test_agent_tools.py",
    "tests/test_controller.py",
    "tests/test_hosted.py",
    "tests/test_loop_edges.py",
    "tests/test_state_edges.py",
    "tests/properties/test_loop_properties.py",
)
APART = ("tests/test_stream_faults.py::test_a_child_of_a_busy_process_publishes_without_hanging",)
"""Tests that fork themselves while threads run: a trace of coverage may be in the midst of it."""

_CALLS = (*_LOOP, "tests/durable/test_runs.py")
_BY_MODULE = {
    "schema": _SCHEMA,
    "_signature": _SCHEMA,
    "_leaf": _SCHEMA,
    "_strict": _SCHEMA,
    "_arguments": _SCHEMA,
    "wire": _WIRE,
    "_channel": _STREAM,
    "stream": _STREAM,
    "events": _STREAM,
    "tool": (*_STREAM, "tests/test_definition.py", "tests/test_tool_edges.py"),
    "decorators": (*_STREAM, "tests/test_definition.py", "tests/test_tool_edges.py"),
    "loop": _LOOP,
    "_calls": _CALLS,
    "state": _LOOP,
}


def tests_of(modules: list[str]) -> list[str]:
    """Give the test files for modules, each once.

    Raises:
        SystemExit: A module has none here: they are to be named.
    """
    found: dict[str, None] = {}
    for module in modules:
        part = (*module.split("."), "")[1]
        if part not in _BY_MODULE:
            raise SystemExit(f"Name the tests that speak for {module}: --tests tests/test_x.py")
        found.update(dict.fromkeys(_BY_MODULE[part]))
    return list(found)
