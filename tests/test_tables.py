"""Tables, figures and images as results: what the model reads, and the artifact of the whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from inline_snapshot import snapshot

from agents_tools import (
    FunctionTool,
    ToolArtifactEvent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    function_tool,
    listen,
)

PNG = b"\x89PNG\r\n\x1a\n"
EXTERNAL = pytest.mark.external  # only `make test-all` installs these packages


def returning(value: Any) -> FunctionTool[..., Any]:
    """Return a tool that returns a value."""
    return function_tool(lambda: value, name_override="sales")


async def output_and_artifacts(value: Any) -> tuple[Any, list[ToolArtifactEvent]]:
    """Return the output for the model and the emitted artifacts."""
    async with listen() as events:
        outcome = await returning(value).call(None, "{}")
    assert outcome.status == "ok", outcome.output
    return outcome.output, [event for event in events if isinstance(event, ToolArtifactEvent)]


# --- stand-ins with the methods of data libraries


class Frame:
    """A table with the methods that polars and DuckDB have."""

    def __init__(self, rows: list[tuple[Any, ...]], **columns: str) -> None:
        self._rows = rows
        self.columns = list(columns)
        self.dtypes = list(columns.values())
        self.shape = (len(rows), len(columns))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Mark the class as a table."""
        raise NotImplementedError

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        return iter(self._rows)


class Relation:
    """A relation with the methods of DuckDB 1.x, which keep no position."""

    columns = ("n",)
    dtypes = ("BIGINT",)

    def __init__(self, count: int, offset: int = 0) -> None:
        self.shape = (count, 1)
        self._rows = [(number,) for number in range(offset, offset + count)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Mark the class as a table."""
        raise NotImplementedError

    def limit(self, count: int, offset: int = 0) -> Relation:
        """Return a part of the rows."""
        return Relation(max(0, min(count, self.shape[0] - offset)), offset)

    def fetchall(self) -> list[tuple[int]]:
        """Return the rows."""
        return self._rows


class Unreadable:
    """A table that no installed library can read."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return no stream."""
        raise ValueError("no stream")


class Chart:
    """An object for notebooks, with the display forms that it is created with."""

    def __init__(self, png: Any = None, markdown: Any = None) -> None:
        self._png, self._markdown = png, markdown

    def _repr_png_(self) -> Any:
        return self._png

    def _repr_markdown_(self) -> Any:
        return self._markdown


class Figure:
    """A figure with the method of matplotlib."""

    def savefig(self, file: Any, *, format: str) -> None:
        """Write a PNG."""
        assert format == "png"
        file.write(PNG)


class Axes:
    """The axes of a figure."""

    def get_figure(self) -> Figure:
        """Return the figure."""
        return Figure()


async def test_a_small_table_is_shown_as_a_whole() -> None:
    """Shape, column types and rows are what a model needs to answer questions about a table."""
    frame = Frame(
        [(1, "a|b\nc", b"\x00\x01"), (None, "\x1b[1m", b"xy"), (float("nan"), "", b"")],
        n="Int64",
        text="String",
        data="Binary",
    )
    output, artifacts = await output_and_artifacts(frame)
    assert output == snapshot("""\
Frame with 3 rows and 3 columns: n (Int64), text (String), data (Binary)

| n | text | data |
| --- | --- | --- |
| 1 | a\\|b c | <2 bytes> |
|  | \\x1b[1m | <2 bytes> |
|  |  | <0 bytes> |\
""")
    assert artifacts == []


async def test_the_whole_table_is_an_artifact_if_a_part_is_shown() -> None:
    """The model reads the first rows; the application gets the whole table."""
    frame = Frame([(number, "x" * 200) for number in range(1_234)], n="Int64", text="String")
    output, (artifact,) = await output_and_artifacts(frame)
    lines = output.splitlines()
    assert lines[0] == "Frame with 1,234 rows and 2 columns: n (Int64), text (String)"
    assert len(lines) == 2 + 2 + 20 + 2
    assert lines[4] == f"| 0 | {'x' * 99}… |"
    assert lines[-1] == snapshot(
        "[Shown: the first 20 of 1,234 rows, the beginning of long values. The artifact 'sales-table.csv' has the whole table.]"
    )
    assert (artifact.name, artifact.mime_type) == ("sales-table.csv", "text/csv")
    assert isinstance(artifact.data, str)
    rows = list(csv.reader(io.StringIO(artifact.data)))
    assert rows[0] == ["n", "text"]
    assert rows[-1] == ["1233", "x" * 200]
    assert len(rows) == 1_235


async def test_without_subscribers_the_output_names_no_artifact() -> None:
    """There is no artifact that could be opened."""
    frame = Frame([(number,) for number in range(21)], n="Int64")
    output = await returning(frame).on_invoke_tool(None, "{}")
    assert output.endswith("[Shown: the first 20 of 21 rows.]")


async def test_a_wide_table_shows_its_first_columns() -> None:
    """A table of thousands of columns would fill the context of the model."""
    names = {f"c{number}": "Int64" for number in range(1_000)}
    output, (artifact,) = await output_and_artifacts(Frame([tuple(range(1_000))], **names))
    assert output.count("Int64") == 30
    assert "c29 (Int64), and 970 more" in output
    assert "[Shown: the first 30 of 1,000 columns. The artifact" in output
    assert str(artifact.data).startswith("c0,c1,c2")


async def test_a_huge_table_has_a_bounded_artifact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relation can have more rows than fit in memory."""
    monkeypatch.setattr("agents_tools.content.tables._MAX_CSV", 1_000)
    output, (artifact,) = await output_and_artifacts(Relation(50_000))
    assert "The artifact 'sales-table.csv' has the first " in output
    assert len(str(artifact.data)) < 1_100


async def test_bytes_are_base64_in_the_artifact() -> None:
    """CSV has no other form for them."""
    _, (artifact,) = await output_and_artifacts(Frame([(b"\xff",)] * 21, data="Binary"))
    assert str(artifact.data).splitlines()[1] == "/w=="


async def test_every_row_of_a_relation_is_read() -> None:
    """DuckDB 1.x runs the query again for each part."""
    _, (artifact,) = await output_and_artifacts(Relation(25_000))
    assert str(artifact.data).splitlines()[-1] == "24999"


async def test_tables_inside_other_results() -> None:
    """A tool can return several of them, or one inside of a dict."""
    frame = Frame([(1, "a")], n="Int64", text="String")
    output, _ = await output_and_artifacts(["Two tables:", frame, frame])
    assert [type(block) for block in output] == [ToolOutputText] * 3
    assert output[1] == output[2]
    assert (await output_and_artifacts({"rows": frame}))[0] == '{"rows":[{"n":1,"text":"a"}]}'
    content, _ = await output_and_artifacts(ToolResult(content=frame, metadata={"n": 1}))
    assert content == output[1].text


async def test_a_table_that_cannot_be_read_is_a_fault_of_the_tool() -> None:
    """The model cannot correct it."""
    outcome = await returning(Unreadable()).call(None, "{}")
    assert outcome.status == "tool_error"
    assert "a fault of the tool and not of the call" in str(outcome.output)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Chart(png=PNG), [ToolOutputImage(PNG)]),
        (Chart(png="iVBORw0KGgo="), [ToolOutputImage(PNG)]),
        (Chart(png=(PNG, {"width": 1}), markdown="*x*"), [ToolOutputImage(PNG)]),
        (Chart(markdown="**Sales** rose."), "**Sales** rose."),
        (Chart(markdown=("**Sales** rose.", {})), "**Sales** rose."),
        (Figure(), [ToolOutputImage(PNG)]),
        (Axes(), [ToolOutputImage(PNG)]),
        (["See:", Figure(), Chart(markdown="*x*")], None),
    ],
)
async def test_figures_and_objects_for_notebooks_are_shown_as_there(
    value: Any, expected: Any
) -> None:
    """Their classes say how they are displayed."""
    output, _ = await output_and_artifacts(value)
    mixed = [ToolOutputText("See:"), ToolOutputImage(PNG), ToolOutputText("*x*")]
    assert output == (expected or mixed)


async def test_an_object_without_a_display_form_stays_an_error() -> None:
    outcome = await returning(Chart()).call(None, "{}")
    assert outcome.status == "tool_error"


# --- the libraries themselves


def _pandas() -> tuple[Any, str]:
    pd: Any = pytest.importorskip("pandas")

    dates = pd.date_range("2026-01-01", periods=2)
    frame = pd.DataFrame({"city": ["Rome", None], "n": [1, 2], "day": dates})
    return frame, "| Rome | 1 | 2026-01-01 00:00:00 |\n|  | 2 | 2026-01-02 00:00:00 |"


def _pandas_index() -> tuple[Any, str]:
    pd: Any = pytest.importorskip("pandas")

    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
    columns = pd.MultiIndex.from_tuples([("n", "sum")])
    frame = pd.DataFrame([[3], [4]], index=levels, columns=columns)
    return frame, "| k |  | n/sum |\n| --- | --- | --- |\n| a | 1 | 3 |\n| b | 2 | 4 |"


def _pandas_series() -> tuple[Any, str]:
    pd: Any = pytest.importorskip("pandas")

    frame = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "n": [1, 2, 3]})
    return (
        frame.groupby("city")["n"].sum(),
        "| city | n |\n| --- | --- |\n| Oslo | 2 |\n| Rome | 4 |",
    )


def _polars() -> tuple[Any, str]:
    polars: Any = pytest.importorskip("polars")
    return polars.DataFrame({"n": [1, None], "t": ["x", "y"]}), "| 1 | x |\n|  | y |"


def _polars_series() -> tuple[Any, str]:
    polars: Any = pytest.importorskip("polars")
    return polars.Series("n", [1, None]), "| n |\n| --- |\n| 1 |\n|  |"


def _arrow() -> tuple[Any, str]:
    pyarrow: Any = pytest.importorskip("pyarrow")
    return pyarrow.table({"n": [1, None], "t": ["x", "y"]}), "| 1 | x |\n|  | y |"


def _arrow_batch() -> tuple[Any, str]:
    pyarrow: Any = pytest.importorskip("pyarrow")
    return pyarrow.record_batch({"n": [1, None], "t": ["x", "y"]}), "| 1 | x |\n|  | y |"


def _arrow_reader() -> tuple[Any, str]:
    return _arrow()[0].to_reader(), "| 1 | x |\n|  | y |"


class _Stream:
    """An object with nothing but the Arrow stream interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _arrow_stream() -> tuple[Any, str]:
    return _Stream(_arrow()[0]), "| 1 | x |\n|  | y |"


class _Interchange:
    """An object with nothing but the data frame interchange protocol."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._table.__dataframe__(nan_as_null, allow_copy)


def _interchange() -> tuple[Any, str]:
    return _Interchange(_arrow()[0]), "| 1 | x |\n|  | y |"


def _duckdb() -> tuple[Any, str]:
    duckdb: Any = pytest.importorskip("duckdb")
    return duckdb.sql("select * from (values (1, 'x'), (null, 'y')) t(n, t)"), "| 1 | x |\n|  | y |"


@pytest.mark.parametrize(
    "create",
    [
        _pandas,
        _pandas_index,
        _pandas_series,
        *(
            pytest.param(create, marks=EXTERNAL)
            for create in (
                _polars,
                _polars_series,
                _arrow,
                _arrow_batch,
                _arrow_reader,
                _arrow_stream,
                _interchange,
                _duckdb,
            )
        ),
    ],
    ids=lambda create: create.__name__.strip("_"),
)
async def test_tables_of_each_library_are_described(create: Callable[[], tuple[Any, str]]) -> None:
    """Users return what their library gives them."""
    value, expected = create()
    output, artifacts = await output_and_artifacts(value)
    assert output.startswith(f"{type(value).__name__} with 2 rows and ")
    assert output.endswith(expected)
    assert artifacts == []


async def test_values_of_pandas_and_numpy_inside_a_dict_become_json() -> None:
    """A summary often holds some of them."""
    np: Any = pytest.importorskip("numpy")
    pd: Any = pytest.importorskip("pandas")

    value = {
        "na": pd.NA,
        "nat": pd.NaT,
        "day": pd.Timestamp("2026-01-01"),
        "mean": np.float64(1.5),
        "n": np.int64(2),
        "values": np.arange(3),
        "series": pd.Series([1, None]),
        "index": pd.Index(["a"]),
        "rows": pd.DataFrame({"n": [1]}),
    }
    output, _ = await output_and_artifacts(value)
    assert output == snapshot(
        '{"na":null,"nat":null,"day":"2026-01-01T00:00:00","mean":1.5,"n":2,"values":[0,1,2],"series":[1.0,null],"index":["a"],"rows":[{"n":1}]}'
    )


async def test_an_image_of_pillow_becomes_an_image() -> None:
    """The model sees it."""
    image: Any = pytest.importorskip("PIL.Image")
    (block,), _ = await output_and_artifacts(image.new("RGB", (4, 4)))
    assert isinstance(block, ToolOutputImage)
    assert block.mime_type == "image/png"


@EXTERNAL
async def test_a_figure_of_matplotlib_becomes_an_image() -> None:
    """Tools that plot return the figure or its axes."""
    figure: Any = pytest.importorskip("matplotlib.figure").Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.plot([1, 2])
    for value in (figure, axes):
        (block,), _ = await output_and_artifacts(value)
        assert isinstance(block, ToolOutputImage)
        assert block.mime_type == "image/png"
