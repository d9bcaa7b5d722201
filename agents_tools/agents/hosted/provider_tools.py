"""Hosted tools that run at the provider: web search, file search, Python and images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.agents.hosted.base import HostedTool, copy_config, copy_mappings, json_options
from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CodeInterpreterTool", "FileSearchTool", "ImageGenerationTool", "WebSearchTool"]


@dataclass(frozen=True, eq=False)
class WebSearchTool(HostedTool):
    """Lets the model search the web.

    Attributes:
        user_location: The approximate location of the user, for example
            `{"type": "approximate", "city": "Lisbon"}`.
        search_context_size: How much of the search results the model reads.
        filters: Which pages are searched, for example `{"allowed_domains": [...]}`.
        preview: Whether to use `web_search_preview`, the tool of older models.
        external_web_access: Whether pages are fetched; `False` searches cached pages only.
        search_content_types: The kinds of content to search for, `text` and `image`; only with
            `preview`.

    Raises:
        UserError: An option has the wrong form, or does not belong to this kind of search.
    """

    user_location: Mapping[str, Any] | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    filters: Mapping[str, Any] | None = None
    preview: bool = False
    external_web_access: bool | None = None
    search_content_types: Sequence[Literal["text", "image"]] | None = None

    def __post_init__(self) -> None:
        copy_mappings(self, "user_location", "filters")
        size: object = self.search_context_size
        if size not in (None, "low", "medium", "high"):
            raise UserValueError(
                "WebSearchTool(search_context_size=...) has an unknown value: expected 'low', "
                f"'medium' or 'high', got {size!r:.60}."
            )
        other = ("filters", "external_web_access") if self.preview else ("search_content_types",)
        for name in other:
            if getattr(self, name) is not None:
                kind = "web_search" if self.preview else "web_search_preview"
                raise UserValueError(
                    f"WebSearchTool({name}=...) is an option of {kind!r}. Set preview="
                    f"{not self.preview} or remove the option."
                )

    @property
    def name(self) -> str:
        """`web_search`, or `web_search_preview`."""
        return "web_search_preview" if self.preview else "web_search"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(
            type=self.name,
            user_location=self.user_location,
            search_context_size=self.search_context_size,
            filters=self.filters,
            external_web_access=self.external_web_access,
            search_content_types=self.search_content_types,
        )


@dataclass(frozen=True, eq=False)
class FileSearchTool(HostedTool):
    """Lets the model search uploaded files.

    Attributes:
        vector_store_ids: The ids of the vector stores to search.
        max_num_results: The maximum number of results, from 1 to 50.
        include_search_results: Whether the item of a search contains the results.
        ranking_options: How results are ranked.
        filters: Which files are searched, by their attributes.

    Raises:
        UserError: No vector store is named, or an option has the wrong form.
    """

    vector_store_ids: Sequence[str]
    max_num_results: int | None = None
    include_search_results: bool = False
    ranking_options: Mapping[str, Any] | None = None
    filters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        ids: Any = self.vector_store_ids
        if not isinstance(ids, (list, tuple)) or not all(map(_is_text, cast("list[Any]", ids))):
            raise UserTypeError(
                "FileSearchTool(vector_store_ids=...) has the wrong form: expected a list of the "
                f"ids of vector stores, got {ids!r:.80}."
            )
        if not ids:
            raise UserValueError(
                "FileSearchTool(vector_store_ids=...) is empty. Pass the id of at least one "
                "vector store."
            )
        object.__setattr__(self, "vector_store_ids", list(cast("list[str]", ids)))
        limit: Any = self.max_num_results
        if limit is not None and (type(limit) is not int or not 1 <= limit <= _MAX_RESULTS):
            raise UserValueError(
                "FileSearchTool(max_num_results=...) is out of range: expected a number from 1 to "
                f"{_MAX_RESULTS}, got {limit!r:.60}."
            )
        copy_mappings(self, "ranking_options", "filters")

    @property
    def name(self) -> str:
        """`file_search`."""
        return "file_search"

    @property
    def include(self) -> tuple[str, ...]:
        """The results of the search, if `include_search_results` is set."""
        return ("file_search_call.results",) if self.include_search_results else ()

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(
            type=self.name,
            vector_store_ids=self.vector_store_ids,
            max_num_results=self.max_num_results,
            ranking_options=self.ranking_options,
            filters=self.filters,
        )


@dataclass(frozen=True, eq=False, repr=False)
class CodeInterpreterTool(HostedTool):
    """Lets the model run Python in a sandbox of the provider.

    Attributes:
        tool_config: The definition for the Responses API, for example
            `{"type": "code_interpreter", "container": {"type": "auto"}}`.

    Raises:
        UserError: The definition has the wrong form.
    """

    tool_config: Mapping[str, Any] = field(default_factory=lambda: {"container": {"type": "auto"}})

    def __post_init__(self) -> None:
        copy_config(self, "code_interpreter", required="container")

    @property
    def name(self) -> str:
        """`code_interpreter`."""
        return "code_interpreter"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(**{"type": "code_interpreter", **self.tool_config})


@dataclass(frozen=True, eq=False, repr=False)
class ImageGenerationTool(HostedTool):
    """Lets the model generate images.

    Attributes:
        tool_config: The definition for the Responses API; `{"type": "image_generation"}` by
            default.

    Raises:
        UserError: The definition has the wrong form.
    """

    tool_config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        copy_config(self, "image_generation")

    @property
    def name(self) -> str:
        """`image_generation`."""
        return "image_generation"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(**{"type": "image_generation", **self.tool_config})


_MAX_RESULTS = 50


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
