"""Test that the public dotted paths and their signatures match the stored list."""

from __future__ import annotations

import sys
from pathlib import Path

import griffe

from tests.public_modules import described_package, export_modules, public_modules

STORED = Path(__file__).with_name("public_paths.txt")
KINDS = griffe.ParameterKind


def parameters_of(function: griffe.Function) -> str:
    """Return the parameters of a function, without annotations: names, kinds and defaults."""
    shown: list[str] = []
    starred = False
    positional_only = False
    for parameter in function.parameters:
        if parameter.name in {"self", "cls"}:
            continue
        if positional_only and parameter.kind is not KINDS.positional_only:
            shown.append("/")
        positional_only = parameter.kind is KINDS.positional_only
        if parameter.kind is KINDS.var_positional:
            starred = True
        if parameter.kind is KINDS.keyword_only and not starred:
            shown.append("*")
            starred = True
        stars = (
            ""
            if parameter.kind is None
            else {KINDS.var_positional: "*", KINDS.var_keyword: "**"}.get(parameter.kind, "")
        )
        default = f"={parameter.default}" if parameter.default is not None and not stars else ""
        shown.append(f"{stars}{parameter.name}{default}")
    return ", ".join(shown)


def is_public(path: str) -> bool:
    return not any(part.startswith("_") for part in path.split("."))


def lines_of(path: str, member: griffe.Object | griffe.Alias) -> list[str]:
    """Return one line for a function or value, and one for each method of a class."""
    if member.is_alias:
        try:
            member = member.final_target  # type: ignore[union-attr]
        except (griffe.AliasResolutionError, griffe.CyclicAliasError):
            return [f"{path}: unresolved"]
    if isinstance(member, griffe.Function):
        return [f"{path}({parameters_of(member)})"]
    if not isinstance(member, griffe.Class):
        return [path]
    lines = [path]
    for name, inner in sorted(member.all_members.items()):
        if inner.is_alias:
            continue
        if isinstance(inner, griffe.Function) and (name == "__init__" or is_public(name)):
            lines.append(f"{path}.{name}({parameters_of(inner)})")
        elif is_public(name) and isinstance(inner, griffe.Attribute):
            lines.append(f"{path}.{name}")
    return lines


def public_paths() -> list[str]:
    """Return every public dotted path of the package, with its parameters."""
    package = described_package()
    lines: list[str] = []
    for path, names in {**public_modules(), **export_modules()}.items():
        module = package[path.partition(".")[2]] if "." in path else package
        for name in names:
            if name in module.members:
                lines += lines_of(f"{path}.{name}", module.members[name])
    return sorted(set(lines))


def test_public_paths_and_signatures_match_the_stored_list():
    """Programs depend on these names, so a removal or change must be deliberate."""
    assert public_paths() == STORED.read_text(encoding="utf-8").splitlines(), (
        "Run `python -m tests.test_public_paths` to store the new list, and note the change."
    )


if __name__ == "__main__":
    STORED.write_text("\n".join(public_paths()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{STORED}: {len(public_paths())} paths\n")
