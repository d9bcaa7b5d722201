"""Content parts of the OpenAI APIs, data URLs and files, read as content blocks."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given, strategies as st

from agents_tools import MessageOutputItem, ToolOutputText, UserError
from agents_tools.content import (
    ItemHelpers,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    item_from_dict,
)

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


def _read(*parts: Any) -> Any:
    item = item_from_dict({"role": "user", "content": list(parts)})
    assert not isinstance(item, MessageOutputItem)
    return getattr(item, "content", None)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"type": "input_text", "text": "a"}, ToolOutputText("a")),
        (
            {"type": "image_url", "image_url": {"url": "https://e.com/a", "detail": "original"}},
            ToolOutputImage(url="https://e.com/a", detail="original"),
        ),
        ({"type": "image_url", "image_url": "https://e.com"}, ToolOutputImage(url="https://e.com")),
        (
            {"type": "input_image", "file_id": "f", "detail": "low"},
            ToolOutputImage(file_id="f", detail="low"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
            ToolOutputAudio(b"ID3", mime_type="audio/mpeg"),
        ),
        ({"type": "file", "file": {"file_id": "f"}}, ToolOutputFileContent(file_id="f")),
        (
            {"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.pdf"}},
            ToolOutputFileContent(b"%PDF-", filename="a.pdf", mime_type="application/pdf"),
        ),
        (
            {"type": "input_file", "file_data": "data:text/csv;base64,YQ==", "detail": "low"},
            ToolOutputFileContent(b"a", mime_type="text/csv", detail="low"),
        ),
        (
            {"type": "input_file", "file_url": "https://e.com/a.pdf"},
            ToolOutputFileContent(url="https://e.com/a.pdf"),
        ),
        (
            {"type": "image_url", "image_url": "https://e.com", "prompt_cache_breakpoint": {}},
            ToolOutputImage(url="https://e.com"),
        ),
    ],
)
def test_a_part_is_read_as_a_block(part: dict[str, Any], block: Any) -> None:
    """Messages for OpenAI work unchanged, also in the output of a tool."""
    assert _read(part) == [block]
    output = {"type": "function_call_output", "call_id": "c", "output": [part]}
    assert getattr(item_from_dict(output), "output", None) == [block]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "image_url"}, r"content\[1\]: image_url: expected an object, got a NoneType"),
        ({"type": "image_url", "image_url": {}}, r"image_url\.url: expected text"),
        (
            {"type": "image_url", "image_url": {"url": "https://e.com", "detial": "low"}},
            r"image_url\.detial is not a field.*expected url, detail",
        ),
        ({"type": "input_image"}, r"content\[1\]: ToolOutputImage expects exactly one of"),
        (
            {"type": "input_audio", "input_audio": {"data": "???", "format": "wav"}},
            r"content\[1\]: input_audio\.data is not valid base64",
        ),
        ({"type": "input_audio", "input_audio": {"data": ""}}, r"input_audio\.format: expected"),
        ({"type": "file", "file": {}}, r"expects exactly one of data, url and file_id, got none"),
        (
            {"type": "image", "data": "YQ==", "mime_type": 5},
            r"\(mime_type=\) expects a str, got int",
        ),
        (
            {"type": "file", "data": "YQ==", "filename": []},
            r"\(filename=\) expects a str, got list",
        ),
        (
            {"type": "input_image", "file_id": "f", "detail": {}},
            r"\(detail=\) expects a str, got dict",
        ),
        ({"type": "file", "file": {"path": "a"}}, r"file\.path is not a field"),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,???"}},
            r"content\[1\]: ToolOutputImage\(url=\) has a 'data:' URL that is not valid base64",
        ),
        ({"type": "image", "url": "data:image/png"}, r"'data:' URL without data"),
        ({"type": "video_url"}, r"content\[1\]: Content block type is unknown"),
    ],
)
def test_a_wrong_part_is_refused_with_its_place(part: dict[str, Any], message: str) -> None:
    """The provider would only report a malformed request."""
    with pytest.raises(UserError, match=message):
        ItemHelpers.input_to_new_input_list([{"role": "user", "content": ["Look.", part]}])


def test_a_type_that_is_not_text_is_refused() -> None:
    """The history of a client is checked like every other input."""
    with pytest.raises(UserError, match=r"content\[0\]: expected text or a refusal, got a dict"):
        item_from_dict({"role": "assistant", "content": [{"type": ["text"], "text": "a"}]})


@given(data=st.binary(), mime=st.sampled_from(["image/png", "text/plain", "a/b;charset=utf-8"]))
def test_a_data_url_is_the_same_as_its_data(data: bytes, mime: str) -> None:
    """Providers differ in the forms that they accept; blocks always hold the data."""
    encoded = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    quoted = f"DATA:{mime},{quote_from_bytes(data)}"
    for url in (encoded, quoted):
        block = ToolOutputFileContent(url=url)
        assert (block.data, block.url) == (data, None)
        assert block.mime_type == mime.partition(";")[0]


@pytest.mark.parametrize(
    ("kind", "name", "data", "mime_type"),
    [
        (ToolOutputImage, "a.bin", PNG, "image/png"),
        (ToolOutputImage, "a.svg", b"<svg/>", "image/svg+xml"),
        (ToolOutputAudio, "a.mp3", b"\xff\xf3\x00", "audio/mpeg"),
        (ToolOutputFileContent, "a.pdf", b"%PDF-", "application/pdf"),
        (ToolOutputFileContent, "a.csv", b"a,b", "text/csv"),
        (ToolOutputFileContent, "a", b"\xff\x00", "application/octet-stream"),
    ],
)
def test_a_file_is_read_with_its_media_type(
    tmp_path: Path, kind: Any, name: str, data: bytes, mime_type: str
) -> None:
    """The content decides; the extension helps where the content does not tell."""
    path = tmp_path / name
    path.write_bytes(data)
    block = kind.from_path(str(path))
    assert (block.data, block.mime_type) == (data, mime_type)
    assert block.filename == name


def test_a_file_of_another_kind_is_refused_with_the_block_to_use(tmp_path: Path) -> None:
    """A document in an image block would only fail at the provider."""
    path = tmp_path / "bill.pdf"
    path.write_bytes(b"%PDF-")
    with pytest.raises(UserError, match=r"'bill\.pdf'.*an image.*Use ToolOutputFileContent"):
        ToolOutputImage.from_path(path)
    assert ToolOutputImage.from_path(path, mime_type="image/x").mime_type == "image/x"
    with pytest.raises(FileNotFoundError):
        ToolOutputImage.from_path(tmp_path / "missing.png")
