"""Reads what a docstring says about a function and its parameters.

griffe reads the three styles, and it is exact about spelling where people are not: a section
without a blank line above it, an indented heading, `x -- text`, `@param x`, `:kwarg x:`. So each
style has a speller here, which parts the sections about parameters from the prose and spells them
the way griffe knows. Which name, type and text an entry has is for griffe to say.
"""

from __future__ import annotations

import re
import types
import typing
from collections import abc
from dataclasses import dataclass, field, replace
from inspect import cleandoc, isclass, signature
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._callable import implementation

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from griffe import DocstringSection

__all__ = [
    "Docstring",
    "DocstringStyle",
    "FuncDocumentation",
    "docstring_of",
    "generate_func_documentation",
    "parse_docstring",
    "resolve_doc_type",
]

DocstringStyle = Literal["google", "numpy", "sphinx"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Docstring:
    """What a docstring says.

    Attributes:
        description: The prose, which is all that is not a section; `None` when there is none.
        params: The text about each parameter, by its plain name: `args`, not `*args`.
        types: The type that is stated for each parameter, as text; `''` when none is.
        style: The style of the sections; `None` when there are no sections.
    """

    description: str | None = None
    params: dict[str, str] = field(default_factory=dict[str, str])
    types: dict[str, str] = field(default_factory=dict[str, str])
    style: DocstringStyle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FuncDocumentation:
    """The documentation of a function, as its docstring has it.

    Attributes:
        name: The name of the function.
        description: What it does; `None` where nothing says so.
        param_descriptions: The text of each parameter that has one.
    """

    name: str
    description: str | None
    param_descriptions: dict[str, str]


def parse_docstring(
    doc: str | None, *, style: DocstringStyle | None = None, param_names: Sequence[str] = ()
) -> Docstring:
    """Read a docstring in any of the three styles, or in several at once.

    The description is the text before the first section and the prose after it. Notes and
    warnings are prose; what is returned and raised, examples and references are sections.

    Args:
        doc: The docstring; it need not be dedented.
        style: Read only the sections of this style; those of all styles by default.
        param_names: The parameters of the function. They settle doubtful spellings, such as a
            list of parameters below the author's own words.
    """
    if not doc or not doc.strip():
        return Docstring()
    clean = cleandoc(doc.replace("\r\n", "\n").replace("\0", ""))
    text = "\n".join(line.rstrip() for line in clean.split("\n"))
    names = frozenset(param_names)
    found = _Found()
    for speller in (_Sphinx, _Numpy, _Google):
        if style in {None, speller.style} and re.search(speller.hint, text):
            text = _read(text, speller(names), found)
    return Docstring(
        description=re.sub(r"\n{3,}", "\n\n", text).strip() or None,
        params=found.params,
        types={name: found.types.get(name, "") for name in {**found.params, **found.types}},
        style=found.style,
    )


def docstring_of(
    func: Callable[..., Any],
    *,
    style: DocstringStyle | None = None,
    param_names: Sequence[str] = (),
) -> Docstring:
    """Find the docstring of a callable and read it.

    A `partial` has the docstring of its function, a method without one that of the method it
    overrides, and a callable object that of its `__call__`, or else of its class. The docstring
    of a class is read together with that of its `__init__`.
    """
    behind = implementation(func)
    doc = _doc(func) or _doc(behind) or _inherited_doc(func)
    if doc is None and behind is getattr(type(func), "__call__", None):  # noqa: B004 - not to call it
        doc = _doc(type(func))
    found = parse_docstring(doc, style=style, param_names=param_names)
    if not isclass(func):
        return found
    more = parse_docstring(_doc(behind), style=style, param_names=param_names)
    stated = {name: kind for name, kind in found.types.items() if kind}
    return replace(
        found,
        params=more.params | found.params,
        types=found.types | more.types | stated,
        style=found.style or more.style,
    )


def generate_func_documentation(
    func: Callable[..., Any], style: DocstringStyle | None = None
) -> FuncDocumentation:
    """Read the name, the description and the texts about the parameters of a callable."""
    found = docstring_of(func, style=style, param_names=_parameter_names(func))
    name = getattr(func, "__name__", None) or getattr(implementation(func), "__name__", None)
    return FuncDocumentation(
        name=name if isinstance(name, str) and name != "__call__" else type(func).__name__,
        description=found.description,
        param_descriptions=found.params,
    )


def resolve_doc_type(text: str, namespace: Mapping[str, Any]) -> Any | None:
    """Turn the type that a docstring states into an annotation; `None` where that is a guess.

    Args:
        text: What is stated: `int`, `list of str`, `str or None`, `{'a', 'b'}`.
        namespace: Where the names of other types come from: the globals of the function. The
            text is parsed, never evaluated, and nothing of the namespace is called.
    """
    text = _tidy_type(text)
    if not text or len(text) > _TYPE_LIMIT or re.search(_RISKY_LITERAL, text):
        return None
    try:
        found = _resolve_phrase(text, namespace)
    except (_UnknownTypeError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return None if found is type(None) else found


def _doc(value: object) -> str | None:
    """Give the docstring of a value itself; an instance shows that of its class otherwise."""
    doc = getattr(value, "__doc__", None)
    own = isclass(value) or doc is not getattr(type(value), "__doc__", None)
    return doc if own and isinstance(doc, str) else None


def _inherited_doc(func: object) -> str | None:
    if not isinstance(func, types.MethodType):
        return None
    owner = func.__self__ if isclass(func.__self__) else type(func.__self__)
    name = func.__name__
    docs = (_doc(vars(base)[name]) for base in owner.__mro__ if name in vars(base))
    return next((doc for doc in docs if doc), None)


def _parameter_names(func: Callable[..., Any]) -> Sequence[str]:
    try:
        return tuple(signature(func).parameters)
    except (TypeError, ValueError):
        return ()


# ----- reading --------------------------------------------------------------------------------


class _Found:
    """What the styles have found so far; whoever speaks of a parameter first is right."""

    __slots__ = ("params", "style", "types")

    def __init__(self) -> None:
        self.params: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.style: DocstringStyle | None = None

    def take(self, names: Sequence[str], annotation: object, description: str) -> None:
        stated = "" if annotation is None else _tidy_type(_unmask(str(annotation)))
        text = _unmask(description).strip()
        if "\n" in text:
            text = cleandoc(text)
        if not text and stated and resolve_doc_type(stated, {}) is None:
            text = stated  # "nodes : container of nodes" says it all, in prose
        for name in names:
            if text:
                self.params.setdefault(name, text)
            if stated:
                self.types.setdefault(name, stated)


def _read(text: str, speller: _Speller, found: _Found) -> str:
    """Take the sections of one style out of a text; return the rest."""
    if not speller.spell(text.split("\n")):
        return text
    if found.style is None or not (found.params or found.types):
        found.style = speller.style
    try:
        sections = _griffe("\n".join(speller.sections), speller.style) if speller.sections else []
    except (LookupError, ValueError, RecursionError, MemoryError):
        return text  # a docstring is never a reason to refuse a function
    for section in sorted(sections, key=lambda section: section.kind.value == "attributes"):
        if section.kind.value in {"parameters", "attributes"}:
            for entry in section.value:
                names = [speller.renamed.get(name, name) for name in _plain_names(entry.name)]
                found.take(names, entry.annotation, entry.description)
    return "\n".join(speller.prose)


def _griffe(text: str, style: DocstringStyle) -> list[DocstringSection]:
    import griffe  # 64 ms: only for a docstring with a section

    doc = griffe.Docstring("")
    doc.value = text.rstrip()  # given above, a heading on the first line would not be one
    if style == "google":
        return griffe.parse_google(doc, warnings=False)
    if style == "numpy":
        return griffe.parse_numpy(doc, warnings=False)
    return griffe.parse_sphinx(doc, warnings=False)


# ----- spelling -------------------------------------------------------------------------------
#
# Two characters of the private use area stand for what griffe must not see. In front of a type,
# _MARK makes griffe hand it back as it was written: it compiles types otherwise, and complains of
# those that are no Python. _COLON is a colon inside a type.

_MARK = "\ue000"
_COLON = "\ue001"

_PARAMETERS, _ATTRIBUTES, _DROPPED, _PROSE = "parameters", "attributes", "dropped", "prose"

_HEADINGS: dict[str, str] = {
    title: kind
    for kind, titles in {
        _PARAMETERS: "arg, args, argument, arguments, param, params, parameter, parameters, "
        "keyword args, keyword argument, keyword arguments, keyword params, keyword parameters, "
        "keyword-only arguments, kwargs, optional args, optional arguments, optional parameters, "
        "optional keyword arguments, other args, other arguments, other keyword arguments, "
        "other params, other parameters, positional arguments, required arguments, "
        "required parameters",
        _ATTRIBUTES: "attribute, attributes",
        _DROPPED: "example, examples, example usage, exceptions, raise, raises, receive, receives, "
        "reference, references, return, returns, return type, return value, return values, "
        "see also, throws, todo, type args, type arguments, type params, type parameters, warns, "
        "yield, yields",
        _PROSE: "attention, caution, danger, important, note, notes, tip, warning, warnings",
    }.items()
    for title in titles.split(", ")
}


class _Speller:
    """Parts the sections of one style from the prose and spells them for griffe."""

    style: DocstringStyle
    hint: str
    """What a text must match to be worth a look."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.prose: list[str] = []
        self.sections: list[str] = []
        self.renamed: dict[str, str] = {}

    def spell(self, lines: list[str]) -> bool:
        """Say whether there is any section; fill `prose` and `sections`."""
        raise NotImplementedError


class _Sphinx(_Speller):
    """Fields: `:param x: text`, and epydoc's `@param x: text`."""

    style = "sphinx"
    hint = r"(?m)^[ \t]*[:@][a-z]"

    def spell(self, lines: list[str]) -> bool:
        code = _code_lines(lines)
        inside: int | None = None  # the indent of the field that is open
        found = kept = False
        for index, line in enumerate(lines):
            indent = _indent(line)
            if not code[index] and (kind := self._field(line)):
                inside, found, kept = indent, True, kind != _DROPPED
            elif inside is not None and (
                not line
                or indent > inside
                or (indent == inside and lines[index - 1] and not _is_field(line))
            ):
                if kept:
                    rest = line[inside:]
                    self.sections.append(_MARK + rest if rest.startswith(":") else rest)
            else:
                if inside is not None:
                    self.prose.append("")
                inside = None
                self.prose.append(line)
        return found

    def _field(self, line: str) -> str | None:
        """Add a field, if the line starts one, and say of which kind it is."""
        if line.lstrip()[:1] not in {":", "@"}:
            return None
        match = re.match(_FIELD, line)
        if match is None:
            return self._open_field(line)
        kind = _FIELDS.get(match["kind"]) if _is_field(line) else None
        args = _without_roles(match["args"]).strip()
        if kind in {None, _DROPPED}:
            return kind
        names, stated = self._names_and_type(args) if args else ([], "")
        text = match["text"].strip()
        if not names:  # ":param x what it is: and more"
            first, _, rest = args.partition(" ")
            names, text = _plain_names(first), f"{rest}: {text}"
        for name in names:
            if kind == "type":
                self.sections.append(f":type {name}: {_MARK}{text}")
                continue
            if stated:
                self.sections.append(f":type {name}: {_MARK}{stated}")
            self.sections.append(f":{kind} {name}: {text}")
        return kind if names else None

    def _names_and_type(self, args: str) -> tuple[list[str], str]:
        args = args.partition("=")[0]  # ":param x=None: text"
        if names := _plain_names(args):
            return names, ""
        if args.endswith(")"):  # ":param x (int): text"
            head, _, stated = args[:-1].partition("(")
            return _plain_names(head), stated
        first, *between = args.split()
        if not between:
            return [], ""
        last = between.pop()
        if last.lstrip("*") not in self.names and first.lstrip("*") in self.names:
            if between:
                return [], ""
            first, last = last, first  # ":param x int: text"
        return _plain_names(last), " ".join([first, *between])

    def _open_field(self, line: str) -> str | None:
        """Accept ":param x what it is", without the second colon, for a name that exists."""
        match = re.match(_OPEN_FIELD, line)
        if match is None or _FIELDS.get(match["kind"]) != "param":
            return None
        names = _plain_names(match["name"])
        if not names or not self.names.issuperset(names):
            return None
        self.sections.extend(f":param {name}: {match['text']}" for name in names)
        return "param"


class _Numpy(_Speller):
    """Sections below an underlined heading."""

    style = "numpy"
    hint = r"(?m)^[ \t]*[-=~^]{3}"

    def spell(self, lines: list[str]) -> bool:
        code = _code_lines(lines)
        headings = [
            index
            for index in range(len(lines) - 1)
            if not code[index] and _is_underlined(lines, index)
        ]
        known = [index for index in headings if _HEADINGS.get(_title(lines[index]))]
        if not known:
            return False
        first = known[0]
        self.prose.extend(lines[:first])
        margin = _indent(lines[first])  # a title further to the right stands inside an entry
        starts = [index for index in headings if index >= first and _indent(lines[index]) <= margin]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            self._section(lines, start, end)
        return True

    def _section(self, lines: list[str], start: int, end: int) -> None:
        kind = _HEADINGS.get(_title(lines[start]))
        indent = _indent(lines[start])
        body = lines[start + 2 : end]
        inside = _count(body, lambda line: not line or _indent(line) >= indent)
        body, rest = body[:inside], body[inside:]
        if kind is None:
            self.prose += [*lines[start : start + 2], *body]
        elif kind == _PROSE:
            self.prose += [_title(lines[start]).capitalize() + ":"]
            self.prose += [line and "    " + line[indent:] for line in body]
        elif kind != _DROPPED:
            title = "Attributes" if kind == _ATTRIBUTES else "Parameters"
            self.sections += [title, "-" * len(title)]
            self.prose += ["", *self._entries(body)]
            self.sections.append("")
        self.prose += ["", *rest]

    def _entries(self, body: list[str]) -> list[str]:
        """Add the entries of a section; return the prose that follows them."""
        indent = _indent(next((line for line in body if line), ""))
        for index, line in enumerate(body):
            following = body[index + 1] if index + 1 < len(body) else ""
            if not line:
                self.sections.append("")
            elif _indent(line) > indent:
                text = line[indent:].removeprefix("    ")
                self.sections.append("    " + (text if text.strip(" -") else _MARK + text))
            elif _indent(line) < indent or (
                index and not body[index - 1] and not self._is_entry(line, following)
            ):
                return body[index:]
            else:
                self._entry(line.strip())
        return []

    @staticmethod
    def _is_entry(line: str, following: str) -> bool:
        head, colon, rest = line.strip().partition(":")
        if colon and not rest and _HEADINGS.get(_title(head)):
            return False  # a section of another style
        indented = _indent(following) > _indent(line) and not line.lstrip().startswith(".. ")
        return " : " in line or indented or bool(_plain_names(head))

    def _entry(self, line: str) -> None:
        head, colon, stated = re.sub(_BULLET, "", line).partition(":")
        text = ""
        if head.rstrip().endswith(")"):  # "x (int): text"
            text = stated
            head, _, stated = head.rstrip()[:-1].partition("(")
        elif not colon:  # "x -- text"
            head, _, text = _split_dash(head)
        names = [self._ascii(name) for name in _plain_names(head.partition("=")[0])]
        self.sections.append(
            f"{', '.join(names) or head.strip()[:_HEAD_LIMIT]} : {_MARK}{stated.strip()}"
        )
        if text:
            self.sections.append("    " + text.strip())

    def _ascii(self, name: str) -> str:
        """Spell a name in ASCII: griffe reads no other names in this style."""
        if name.isascii():
            return name
        plain = "".join(char if char.isascii() else f"_{ord(char):x}_" for char in name)
        self.renamed[plain] = name
        return plain


class _Google(_Speller):
    """Indented sections below a heading with a colon, and lists of parameters without one."""

    style = "google"
    hint = ":|--"

    def spell(self, lines: list[str]) -> bool:
        code = _code_lines(lines)
        index = 0
        found = False
        while index < len(lines):
            kind, start, end = (None, 0, 0) if code[index] else self._section(lines, index)
            if kind is None:
                self.prose.append(lines[index])
                index += 1
                continue
            found = True
            if kind != _DROPPED:
                self.sections.append("Attributes:" if kind == _ATTRIBUTES else "Args:")
                self.sections += [*self._entries(lines[start:end]), ""]
            self.prose.append("")
            index = end
        return found

    def _section(self, lines: list[str], index: int) -> tuple[str | None, int, int]:
        """Say which section starts on a line, if any, where its body starts, and where it ends."""
        line = lines[index]
        if ":" not in line and " -" not in line:
            return None, 0, 0
        title, colon, rest = line.strip().strip("*_#").lstrip(":").partition(":")
        kind = _HEADINGS.get(_title(title)) if colon else None
        start = index + 1
        while not rest and start < len(lines) and not lines[start]:
            start += 1
        if kind in {None, _PROSE} or start == len(lines):
            if self._starts_list(lines, index):
                self._drop_heading()
                return _PARAMETERS, index, self._end_of_list(lines, index)
            return None, 0, 0
        indent = _indent(line)
        if _indent(lines[start]) > indent:
            inside = _count(lines[start:], lambda line: not line or _indent(line) > indent)
            return kind, start, start + inside
        if rest.strip("*_ "):
            return None, 0, 0
        if kind == _DROPPED:  # the paragraph right below
            inside = _count(lines[start:], bool) if start == index + 1 else 0
            return (kind, start, start + inside) if inside else (None, 0, 0)
        if self._is_entry(lines, start):
            return kind, start, self._end_of_list(lines, start)
        if index == 0 and _head(re.sub(_BULLET, "", lines[start])):
            return kind, start, len(lines)  # all that follows a first line lost its indent to it
        return None, 0, 0

    def _starts_list(self, lines: list[str], index: int) -> bool:
        """Tell whether a list of parameters starts here, without a heading that is known."""
        above = lines[index - 1] if index else "the summary"
        line = lines[index].lstrip()
        apart = not above or above.endswith(":") or re.match(_BULLET, line) or " -- " in line
        return bool(apart) and self._is_entry(lines, index)

    def _drop_heading(self) -> None:
        """Drop the line above a list that does nothing but announce it."""
        while self.prose and not self.prose[-1]:
            self.prose.pop()
        if len(self.prose) > 1 and not self.prose[-2] and self.prose[-1].endswith(":"):
            self.prose.pop()

    def _end_of_list(self, lines: list[str], start: int) -> int:
        """Find the end of a list that no indent sets off."""
        indent = _indent(lines[start])
        index = start + 1
        while index < len(lines):
            line, above = lines[index], lines[index - 1]
            if line and _indent(line) <= indent and not self._is_entry(lines, index):
                lazy = above and _indent(line) == indent and line.lstrip()[0].islower()
                if not lazy or _head(line.strip()):
                    break
            index += 1
        return index

    def _is_entry(self, lines: list[str], index: int) -> bool:
        """Tell whether a line is an entry, with a text, about a parameter that exists."""
        line = lines[index]
        entry = re.sub(_BULLET, "", line.strip())
        head = _head(entry)
        if head is None or self.names.isdisjoint(_plain_names(_before_type(head))):
            return False
        following = lines[index + 1] if index + 1 < len(lines) else ""
        return len(entry) > len(head) + 1 or _indent(following) > _indent(line)

    @staticmethod
    def _entries(body: list[str]) -> Iterator[str]:
        indent = _indent(body[0])
        deeper = 0  # the indent of the lines that belong to the entry
        for index, line in enumerate(body):
            level = _indent(line)
            if not line:
                yield ""
            elif level > indent:
                deeper = min(deeper or level, level)
                yield " " * (8 + level - deeper) + line.strip()
            else:
                entry = re.sub(_BULLET, "", line.strip())
                head = _head(entry)
                deeper = 0
                if head is not None:
                    yield "    " + _spell_entry(entry, head)
                else:  # a line of text that is not indented
                    yield ("        " if index else "    ") + entry


def _is_field(line: str) -> bool:
    """Tell a field, of whatever kind, from text and from a role such as ":keyword:`None`"."""
    match = re.match(_FIELD, line)
    return match is not None and bool(match["args"] or not re.match(_ROLE_TEXT, match["text"]))


def _spell_entry(entry: str, head: str) -> str:
    """Spell an entry as `name (type): text`."""
    text = entry[len(head) :].lstrip(" :-\N{EN DASH}\N{EM DASH}")
    head = _without_roles(head.strip())
    if "(" not in head and "{" in head:  # "x {int}: text"
        head = head.replace("{", "(", 1).removesuffix("}") + ")"
    return f"{head.replace('(', '(' + _MARK, 1).replace(':', _COLON)}: {text}"


def _head(entry: str) -> str | None:
    """Cut off what stands before the text of an entry: `x`, `*args`, `x (int)`, `x, y`."""
    head, dash, _ = _split_dash(entry)
    if not dash or not _plain_names(_before_type(head)):
        head = entry[: _colon(entry)]
        if len(head) == len(entry) and not head.endswith(")"):
            return None
    return head if _plain_names(_before_type(head)) else None


def _colon(entry: str) -> int:
    """Find the colon that ends the head of an entry: the first one outside of brackets."""
    depth = 0
    for match in re.finditer(_BRACKET_OR_COLON, entry):
        char = match[0]
        if char == ":" and depth <= 0:
            return match.start()
        depth += (char in "([{") - (char in ")]}")
    return len(entry)


def _before_type(head: str) -> str:
    return head.partition("(")[0].partition("{")[0]


def _split_dash(entry: str) -> tuple[str, str, str]:
    if "- " not in entry and entry.isascii():
        return entry, "", ""
    for dash in (" -- ", " \N{EN DASH} ", " \N{EM DASH} ", " - "):
        before, found, after = entry.partition(dash)
        if found:
            return before, found, after
    return entry, "", ""


def _title(line: str) -> str:
    return line.strip(" \t*_#:").casefold()


def _is_underlined(lines: list[str], index: int) -> bool:
    title, line = lines[index].strip(), lines[index + 1].strip()
    if len(line) < 3 or line[0] not in "-=~^" or line.strip(line[0]):  # noqa: PLR2004 - a rule
        return False
    return title.strip("-=~^+| ") != ""


def _plain_names(text: str) -> list[str]:
    """Read `x`, `*args`, `` `x` ``, `x, y` or `x and y` as names; anything else gives none."""
    if text.isidentifier():
        return [text]
    if len(text) > _HEAD_LIMIT:
        return []
    parts = (part.strip(" \t*`'\"") for part in re.split(_AND, text.replace("\\", "")))
    names = [part for part in parts if part.strip(".")]
    return names if all(map(str.isidentifier, names)) else []


def _code_lines(lines: list[str]) -> list[bool]:
    """Say which lines are code: between fences, below a `::`, in a doctest."""
    flags = [False] * len(lines)
    if not any("::" in line or ">>>" in line or "```" in line for line in lines):
        return flags
    fences = [index for index, line in enumerate(lines) if line.lstrip().startswith("```")]
    for start, end in zip(fences[::2], fences[1::2], strict=False):
        flags[start : end + 1] = [True] * (end + 1 - start)
    literal: int | None = None  # the indent of the line that ended with "::"
    doctest = False
    for index, line in enumerate(lines):
        if not line:
            doctest = False
            continue
        indent = _indent(line)
        doctest = doctest or line.startswith(">>>", indent)
        if literal is not None and indent <= literal:
            literal = None
        flags[index] = flags[index] or doctest or literal is not None
        if not flags[index] and line.endswith("::"):
            literal = indent
    return flags


def _without_roles(text: str) -> str:
    return re.sub(_ROLE, r"\1\2", text) if len(text) <= _HEAD_LIMIT else text


def _unmask(text: str) -> str:
    return text.replace(_MARK, "").replace(_COLON, ":")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _count(lines: list[str], inside: Callable[[str], bool]) -> int:
    """Count the lines at the start for which something holds."""
    return next((index for index, line in enumerate(lines) if not inside(line)), len(lines))


_HEAD_LIMIT = 500
_AND = r",|/|\band\b"
_BRACKET_OR_COLON = r"[(\[{:}\])]"
_BULLET = r"^[-*+•][ \t]+"
_ROLE = r":[\w:]*:`~?([^`]*)`|\b[CLIB]\{([^{}]*)\}"  # and epydoc's C{int}
_ROLE_TEXT = r"[\w:]*`"
_FIELD = r"[ \t]*[:@](?P<kind>[a-z]+)(?P<args>(?:[^:]|:[\w:]*:`[^`]*`)*):(?P<text>.*)"
_OPEN_FIELD = r"[ \t]*[:@](?P<kind>[a-z]+)[ \t]+(?P<name>\S+)[ \t]+(?P<text>[^:]*)$"
_FIELDS: dict[str, str] = {
    name: kind
    for kind, names in {
        "param": "param parameter arg argument key keyword kwarg kwparam",
        "type": "type paramtype kwtype",
        "var": "var ivar cvar",
        _DROPPED: "return returns rtype raise raises except exception yield yields ytype vartype "
        "meta see since version author todo bug change",
    }.items()
    for name in names.split()
}


# ----- types ----------------------------------------------------------------------------------

_TYPE_LIMIT = 200
_RISKY_LITERAL = r"\\|(?<!\w)\d\w*[A-Za-z]"  # compiling these can warn
_TYPE_NOISE = (
    r"(?i)(?:^|[,;( ]) *(?:optional|required|keyword[- ]only|positional[- ]only) *\)?$"
    r"|[,;(] *(?:by )?defaults?(?: to| is| ?[=:]| |$).*$"
    r"|^\(?optional\)?,? (?=\w)"
)
_CONTAINER_OF = r"(\w+) of (.+)$"
_OR = r",? or |, ?"

_WORDS: dict[str, Any] = {
    word: kind
    for kind, words in {
        int: "int ints integer integers",
        float: "float floats",
        str: "str strs string strings",
        bool: "bool bools boolean booleans",
        bytes: "bytes",
        list: "list lists sequence sequences iterable iterables",
        tuple: "tuple tuples",
        set: "set sets",
        frozenset: "frozenset",
        dict: "dict dicts dictionary dictionaries mapping mappings",
        type(None): "none nonetype",
        Any: "any",
    }.items()
    for word in words.split()
}
_LITERAL: Any = Literal
_TYPING: dict[str, Any] = {
    "Any": Any,
    "Dict": dict,
    "FrozenSet": frozenset,
    "Iterable": abc.Iterable,
    "List": list,
    "Literal": _LITERAL,
    "Mapping": abc.Mapping,
    "Optional": typing.Optional,
    "Sequence": abc.Sequence,
    "Set": set,
    "Tuple": tuple,
    "Union": typing.Union,
}
_ARITY: dict[Any, int] = {list: 1, set: 1, frozenset: 1, dict: 2}
_SUBSCRIPTABLE = frozenset({"builtins", "collections", "collections.abc", "typing"})


class _UnknownTypeError(Exception):
    """A type that could only be guessed."""


def _tidy_type(text: str) -> str:
    """Strip what is not the type: quotes of code, `optional`, the default."""
    if len(text) > _HEAD_LIMIT or (text.isidentifier() and text != "optional"):
        return text
    text = " ".join(_without_roles(text).replace("`", "").split()).rstrip(".")
    while (shorter := re.sub(_TYPE_NOISE, "", text).rstrip(" ,;")) != text:
        text = shorter
    return text


def _resolve_phrase(text: str, namespace: Mapping[str, Any]) -> Any:
    """Resolve a type in words: `int`, `int, str or None`, `list of str`."""
    parts = text.split(" or ")
    if len(parts) > 1:
        if set(text).isdisjoint("[{('\""):
            parts = re.split(_OR, text)
        if any(re.match(_CONTAINER_OF, part) for part in parts[:-1]) and set(parts[1:]) != {"None"}:
            raise _UnknownTypeError(text)  # "list of int or str": which of the two?
        return _union([_resolve_phrase(part, namespace) for part in parts])
    match = re.match(_CONTAINER_OF, text)
    if match is None:
        import ast  # only parameters without an annotation come here

        return _resolve_node(ast.parse(text, mode="eval").body, namespace)
    container = _WORDS.get(match[1].casefold())
    if container is dict:
        return dict
    if container not in {list, tuple, set, frozenset}:
        raise _UnknownTypeError(text)
    try:
        item = _resolve_phrase(match[2], namespace)
    except (_UnknownTypeError, SyntaxError):
        return container  # what it holds is not known; that it is a list is
    return types.GenericAlias(container, (item, ...) if container is tuple else (item,))


def _resolve_node(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Resolve a type in Python: a name, a subscript, a union, a set of choices."""
    import ast

    match node:
        case ast.Name(id=name):
            return _resolve_name(name, namespace)
        case ast.Attribute(value=value, attr=attr):
            return _resolve_attribute(value, attr, namespace)
        case ast.Constant(value=None):
            return type(None)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([_resolve_node(left, namespace), _resolve_node(right, namespace)])
        case ast.Set(elts=choices):
            return _literal(choices)
        case ast.Subscript(value=value, slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _subscript(_resolve_node(value, namespace), items, namespace)
        case _:
            raise _UnknownTypeError


def _subscript(origin: Any, items: list[ast.expr], namespace: Mapping[str, Any]) -> Any:
    import ast

    if origin is _LITERAL:
        return _literal(items)
    if getattr(origin, "__module__", None) not in _SUBSCRIPTABLE:
        raise _UnknownTypeError  # `__class_getitem__` may run code
    if len(items) != _ARITY.get(origin, len(items)):
        raise _UnknownTypeError
    arguments = [
        ...
        if isinstance(item, ast.Constant) and item.value is ...
        else _resolve_node(item, namespace)
        for item in items
    ]
    return origin[tuple(arguments) if len(arguments) > 1 else arguments[0]]


def _literal(choices: list[ast.expr]) -> Any:
    import ast

    values: list[object] = [choice.value for choice in choices if isinstance(choice, ast.Constant)]
    if len(values) < len(choices) or not all(
        value is None or isinstance(value, (str, int)) for value in values
    ):
        raise _UnknownTypeError
    return _LITERAL[tuple(values)]


def _resolve_name(name: str, namespace: Mapping[str, Any]) -> Any:
    found = namespace.get(name)
    if _is_type(found):
        return found
    word = _TYPING.get(name) or _WORDS.get(name.casefold())
    if word is None:
        raise _UnknownTypeError(name)
    return word


def _resolve_attribute(value: ast.expr, attr: str, namespace: Mapping[str, Any]) -> Any:
    import ast

    owner: Any = None
    if isinstance(value, ast.Name):
        owner = typing if value.id == "typing" else namespace.get(value.id)
    elif isinstance(value, ast.Attribute):
        owner = _resolve_attribute(value.value, value.attr, namespace)
    if not isinstance(owner, (types.ModuleType, type)):
        raise _UnknownTypeError
    found = vars(owner).get(attr)  # `getattr` may run code
    if not _is_type(found) and not isinstance(found, types.ModuleType):
        raise _UnknownTypeError
    return found


def _is_type(value: object) -> bool:
    if isinstance(value, (type, typing.NewType)) or type(value).__name__ == "TypeAliasType":
        return True
    return typing.get_origin(value) is not None or value is Any


def _union(members: Sequence[Any]) -> Any:
    return typing.Union[tuple(members)]  # noqa: UP007 - made at run time
