"""Describe tables for a model: shape, column types and first rows, and all rows as CSV.

Tables are recognized by their methods, so that no data library is imported: data frames and series
of pandas and polars, tables of Arrow, relations of DuckDB, and other objects with the Arrow stream
interface or the data frame interchange protocol.
"""

from __future__ import annotations

import binascii
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KeepTable", "Table", "describe_table", "is_missing", "is_table", "read_table"]

KeepTable: TypeAlias = Callable[[str], str]
"""Stores a table as CSV text, and returns the name under which it is stored."""

_BYTES: Any = (bytes, bytearray, memoryview)
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = 30
_SHOWN_CHARACTERS = 100
"""The maximum number of characters of a name or a value in the description of a table."""
_MAX_CSV = 32 * 1024 * 1024
"""The maximum number of characters of a table as CSV, so that a huge relation fits in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of any library.

    Attributes:
        kind: The name of its type.
        names: The names of the columns, without those of the index.
        types: The types of the columns.
        row_count: The number of rows.
        index: The names of the columns of the index, which come first in each row.
        rows: Returns an iterator over all rows.
    """

    kind: str
    names: list[str]
    types: list[str]
    row_count: int
    index: tuple[str, ...] = ()
    rows: Callable[[], Iterator[Sequence[Any]]]

    @property
    def header(self) -> list[str]:
        """The names of the index and of the columns."""
        return [*self.index, *self.names]


def is_table(kind: Any) -> bool:
    """Return whether a type is a table, or a series, which is a table of one column."""
    if hasattr(kind, "to_pylist") and not hasattr(kind, "schema"):
        return False  # an array of Arrow is a list of values
    is_frame = hasattr(kind, "__dataframe__") or hasattr(kind, "__arrow_c_stream__")
    return is_frame or (hasattr(kind, "to_frame") and hasattr(kind, "index"))


def read_table(value: Any) -> Table | None:
    """Return a value as a table.

    Args:
        value: The value, for whose type `is_table` is true.

    Returns:
        The table; `None` if no installed library can read it.
    """
    frame = value.to_frame() if hasattr(value, "to_frame") else value
    kind = type(value).__name__
    for read in (_read_pandas, _read_rows, _read_relation, _read_arrow):
        table = read(frame, kind)
        if table is not None:
            return table
    converted = _convert_foreign(frame)
    return None if converted is None else _read_arrow(converted, kind) or read_table(converted)


def describe_table(table: Table, keep: KeepTable | None = None) -> str:
    """Return the description of a table for a model.

    Args:
        table: The table.
        keep: Stores the whole table if the description does not show it; `None` to store nothing.
    """
    header = table.header[:_SHOWN_COLUMNS]
    first = [_cells(row) for row in islice(table.rows(), _SHOWN_ROWS)]
    rows = [[_shorten_cell(cell) for cell in row[:_SHOWN_COLUMNS]] for row in first]
    shape = f"{_count(table.row_count, 'row')} and {_count(len(table.names), 'column')}"
    lines = [
        f"{table.kind} with {shape}{_column_types(table)}",
        "",
        _markdown_row(map(_shorten_cell, header)),
        _markdown_row(["---"] * len(header)),
        *map(_markdown_row, rows),
    ]
    hidden = _hidden_parts(table, first)
    if hidden:
        stored = "" if keep is None else f" {_keep_rows(table, keep)}"
        lines += ["", f"[{hidden}{stored}]"]
    return "\n".join(lines)


def is_missing(value: object) -> bool:
    """Return whether a value is one of the values for missing data."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    return isinstance(value, float) and value != value  # noqa: PLR0124 - NaN


_MISSING = frozenset({"NAType", "NaTType"})
"""The types of the values for missing data of pandas."""


# --- the description


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _column_types(table: Table) -> str:
    columns = [
        f"{_shorten_cell(name)} ({kind})"
        for name, kind in zip(table.names, table.types, strict=True)
    ]
    if len(columns) > _SHOWN_COLUMNS:
        columns[_SHOWN_COLUMNS:] = [f"and {len(columns) - _SHOWN_COLUMNS:,} more"]
    return ": " + ", ".join(columns) if columns else ""


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shorten_cell(text: str) -> str:
    return shorten(" ".join(text.split()), _SHOWN_CHARACTERS).replace("|", "\\|")


def _hidden_parts(table: Table, first: list[list[str]]) -> str:
    """Return which part of the table is shown; empty if it is shown as a whole."""
    parts: list[str] = []
    if table.row_count > len(first):
        parts.append(f"the first {len(first):,} of {table.row_count:,} rows")
    if len(table.header) > _SHOWN_COLUMNS:
        parts.append(f"the first {_SHOWN_COLUMNS} of {len(table.header):,} columns")
    if any(len(cell) > _SHOWN_CHARACTERS for row in first for cell in row):
        parts.append("the beginning of long values")
    return f"Shown: {', '.join(parts)}." if parts else ""


def _cells(row: Iterable[Any]) -> list[str]:
    return [_cell(value) for value in row]


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, _BYTES):
        return f"<{len(value):,} bytes>"
    return str(value)


def _csv_cell(value: Any) -> str:
    if isinstance(value, _BYTES):
        return binascii.b2a_base64(value, newline=False).decode()
    return _cell(value)


def _keep_rows(table: Table, keep: KeepTable) -> str:
    """Store the table as CSV, and return a sentence that says where."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    stored = 0
    for row in table.rows():
        writer.writerow(map(_csv_cell, row))
        stored += 1
        if text.tell() > _MAX_CSV:
            break
    amount = "the whole table" if stored >= table.row_count else f"the first {stored:,} rows"
    return f"The artifact {keep(text.getvalue())!r} has {amount}."


# --- the libraries


def _read_pandas(frame: Any, kind: str) -> Table | None:
    if not hasattr(frame, "itertuples"):
        return None
    index = frame.index
    is_default = type(index).__name__ == "RangeIndex" and index.name is None
    levels = getattr(index, "nlevels", 1)

    def rows() -> Iterator[Sequence[Any]]:
        found = frame.itertuples(index=not is_default, name=None)
        return found if is_default or levels == 1 else ((*row[0], *row[1:]) for row in found)

    return Table(
        kind=kind,
        names=[_name(column) for column in frame.columns],
        types=[str(one) for one in frame.dtypes],
        row_count=len(frame),
        index=() if is_default else tuple(_name(one) for one in index.names),
        rows=rows,
    )


def _read_rows(frame: Any, kind: str) -> Table | None:
    """Read a table that iterates over its rows, as those of polars and DuckDB do."""
    if not hasattr(frame, "iter_rows"):
        return None
    return _typed_table(frame, kind, frame.iter_rows)


def _read_relation(frame: Any, kind: str) -> Table | None:
    """Read a relation of DuckDB 1.x, which runs the query of a relation for each result."""
    if not (hasattr(frame, "fetchall") and hasattr(frame, "limit")):
        return None
    return _typed_table(frame, kind, lambda: _relation_rows(frame))


def _relation_rows(relation: Any) -> Iterator[Sequence[Any]]:
    size, offset = 10_000, 0
    while rows := relation.limit(size, offset).fetchall():
        yield from rows
        offset += len(rows)


def _typed_table(frame: Any, kind: str, rows: Callable[[], Iterator[Sequence[Any]]]) -> Table:
    return Table(
        kind=kind,
        names=[_name(column) for column in frame.columns],
        types=[str(one) for one in frame.dtypes],
        row_count=frame.shape[0],
        rows=rows,
    )


def _read_arrow(frame: Any, kind: str) -> Table | None:
    """Read a table or a record batch of pyarrow."""
    if not (hasattr(frame, "num_rows") and hasattr(frame, "schema") and hasattr(frame, "slice")):
        return None
    return Table(
        kind=kind,
        names=[_name(name) for name in frame.schema.names],
        types=[str(one) for one in frame.schema.types],
        row_count=frame.num_rows,
        rows=lambda: _arrow_rows(frame),
    )


def _arrow_rows(frame: Any) -> Iterator[Sequence[Any]]:
    size = 1_000
    for offset in range(0, frame.num_rows, size):
        columns = [column.slice(offset, size).to_pylist() for column in frame.columns]
        yield from zip(*columns, strict=True)


_CONVERTERS = (
    ("__arrow_c_stream__", "pyarrow", "table"),
    ("__arrow_c_stream__", "polars", "DataFrame"),
    ("__dataframe__", "pyarrow.interchange", "from_dataframe"),
    ("__dataframe__", "pandas.api.interchange", "from_dataframe"),
)


def _convert_foreign(frame: Any) -> Any:
    """Return a table of another library as one of an installed library; `None` if none reads it."""
    for interface, module, function in _CONVERTERS:
        if hasattr(frame, interface):
            # Each library raises exceptions of its own for what it does not support.
            with suppress(Exception):
                return getattr(import_module(module), function)(frame)
    return None


def _name(column: Any) -> str:
    if column is None:
        return ""
    if isinstance(column, tuple):  # columns with several levels
        return "/".join(map(str, cast("tuple[Any, ...]", column)))
    return str(column)
