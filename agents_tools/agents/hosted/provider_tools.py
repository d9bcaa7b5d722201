"""Hosted tools that run at the provider: web search and pages, file search, Python and images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.agents.hosted.base import (
    HostedTool,
    copy_config,
    copy_mappings,
    json_options,
    refuse_options,
    with_metadata,
)
from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CodeInterpreterTool",
    "FileSearchTool",
    "ImageGenerationTool",
    "WebFetchTool",
    "WebSearchTool",
]


@dataclass(frozen=True, eq=False)
class WebSearchTool(HostedTool):
    """Lets the model search the web: at OpenAI, Anthropic and Gemini.

    Attributes:
        user_location: The approximate location of the user, for example
            `{"type": "approximate", "city": "Lisbon"}`; not for Gemini.
        search_context_size: How much of the search results the model reads; only for OpenAI.
        filters: Which pages are searched: `allowed_domains` or `blocked_domains`, a list of
            domains; not for Gemini.
        preview: Whether to use `web_search_preview`, the tool of older models of OpenAI.
        external_web_access: Whether pages are fetched; `False` searches cached pages only; only for
            OpenAI.
        search_content_types: The kinds of content to search for, `text` and `image`; only with
            `preview`.
        max_uses: The maximum number of searches in one request; only for Anthropic.
        metadata: Further options of one provider, under `openai` or `anthropic`. They are added to
            the definition of the tool.

    Raises:
        UserError: An option has the wrong form, or does not belong to this kind of search.
    """

    user_location: Mapping[str, Any] | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    filters: Mapping[str, Any] | None = None
    preview: bool = False
    external_web_access: bool | None = None
    search_content_types: Sequence[Literal["text", "image"]] | None = None
    max_uses: int | None = None
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        copy_mappings(self, "user_location", "filters", "metadata")
        _check_positive(self, "max_uses")
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
        refuse_options(self, "OpenAI", "max_uses")
        definition = json_options(
            type=self.name,
            user_location=self.user_location,
            search_context_size=self.search_context_size,
            filters=self.filters,
            external_web_access=self.external_web_access,
            search_content_types=self.search_content_types,
        )
        return with_metadata(self, "openai", definition)

    def to_anthropic(self) -> dict[str, Any]:
        """Return the definition of the tool for the Messages API."""
        refuse_options(
            self,
            "Anthropic",
            *("search_context_size", "preview", "external_web_access", "search_content_types"),
        )
        location = self.user_location
        definition = json_options(
            type="web_search_20250305",
            name="web_search",
            max_uses=self.max_uses,
            user_location=None if location is None else {"type": "approximate", **location},
            **_domains(self.filters),
        )
        return with_metadata(self, "anthropic", definition)

    def to_pydantic_ai(self) -> dict[str, Any]:
        """Return the JSON of the native tool of Pydantic AI."""
        refuse_options(self, "Pydantic AI", "preview", "search_content_types")
        location = {name: one for name, one in (self.user_location or {}).items() if name != "type"}
        return json_options(
            kind="web_search",
            search_context_size=self.search_context_size,
            user_location=location or None,
            external_web_access=self.external_web_access,
            max_uses=self.max_uses,
            **_domains(self.filters),
        )


@dataclass(frozen=True, eq=False)
class WebFetchTool(HostedTool):
    """Lets the model read web pages and PDF documents by URL: at Anthropic and Gemini.

    Attributes:
        allowed_domains: The only domains to read from; not for Gemini.
        blocked_domains: Domains not to read from; not for Gemini.
        max_uses: The maximum number of pages in one request; only for Anthropic.
        max_content_tokens: The approximate maximum number of tokens of one page; only for
            Anthropic.
        citations: Whether the model cites the passages that it uses; only for Anthropic.
        metadata: Further options for Anthropic, under `anthropic`. They are added to the
            definition of the tool.

    Raises:
        UserError: An option has the wrong form.
    """

    allowed_domains: Sequence[str] | None = None
    blocked_domains: Sequence[str] | None = None
    max_uses: int | None = None
    max_content_tokens: int | None = None
    citations: bool = False
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        copy_mappings(self, "metadata")
        for name in ("allowed_domains", "blocked_domains"):
            if getattr(self, name) is not None:
                _check_texts(self, name, "domains")
        for name in ("max_uses", "max_content_tokens"):
            _check_positive(self, name)

    @property
    def name(self) -> str:
        """`web_fetch`."""
        return "web_fetch"

    def to_anthropic(self) -> dict[str, Any]:
        """Return the definition of the tool for the Messages API."""
        definition = json_options(
            type="web_fetch_20250910",
            name=self.name,
            allowed_domains=self.allowed_domains,
            blocked_domains=self.blocked_domains,
            max_uses=self.max_uses,
            max_content_tokens=self.max_content_tokens,
            citations={"enabled": True} if self.citations else None,
        )
        return with_metadata(self, "anthropic", definition)

    def to_pydantic_ai(self) -> dict[str, Any]:
        """Return the JSON of the native tool of Pydantic AI."""
        own = json_options(
            max_content_tokens=self.max_content_tokens,
            enable_citations=True if self.citations else None,
        )
        return json_options(
            kind="web_fetch",
            allowed_domains=self.allowed_domains,
            blocked_domains=self.blocked_domains,
            max_uses=self.max_uses,
            provider_settings={"anthropic": own} if own else None,
        )


@dataclass(frozen=True, eq=False)
class FileSearchTool(HostedTool):
    """Lets the model search uploaded files: at OpenAI and Gemini.

    Attributes:
        vector_store_ids: The ids of the vector stores to search; the names of file search stores
            for Gemini.
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
        _check_texts(self, "vector_store_ids", "the ids of vector stores")
        if not self.vector_store_ids:
            raise UserValueError(
                "FileSearchTool(vector_store_ids=...) is empty. Pass the id of at least one "
                "vector store."
            )
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

    def to_pydantic_ai(self) -> dict[str, Any]:
        """Return the JSON of the native tool of Pydantic AI."""
        refuse_options(
            self,
            "Pydantic AI",
            *("max_num_results", "include_search_results", "ranking_options", "filters"),
        )
        return json_options(kind="file_search", file_store_ids=self.vector_store_ids)


@dataclass(frozen=True, eq=False, repr=False)
class CodeInterpreterTool(HostedTool):
    """Lets the model run code in a sandbox of the provider: at OpenAI, Anthropic and Gemini.

    Attributes:
        tool_config: The definition for the Responses API, for example
            `{"type": "code_interpreter", "container": {"type": "auto"}}`. Other containers than
            the default are only for OpenAI.
        metadata: Further options for Anthropic, under `anthropic`. They are added to the
            definition of the tool.

    Raises:
        UserError: The definition has the wrong form.
    """

    tool_config: Mapping[str, Any] = field(default_factory=lambda: {"container": {"type": "auto"}})
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        copy_config(self, "code_interpreter", required="container")
        copy_mappings(self, "metadata")

    @property
    def name(self) -> str:
        """`code_interpreter`."""
        return "code_interpreter"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return json_options(**{"type": "code_interpreter", **self.tool_config})

    def to_anthropic(self) -> dict[str, Any]:
        """Return the definition of the tool for the Messages API."""
        self._refuse_container("Anthropic")
        definition = {"type": "code_execution_20250825", "name": "code_execution"}
        return with_metadata(self, "anthropic", definition)

    def to_pydantic_ai(self) -> dict[str, Any]:
        """Return the JSON of the native tool of Pydantic AI."""
        self._refuse_container("Pydantic AI")
        return {"kind": "code_execution"}

    def _refuse_container(self, provider: str) -> None:
        if self.to_responses() != {"type": "code_interpreter", "container": {"type": "auto"}}:
            raise UserValueError(
                "CodeInterpreterTool(tool_config=...) describes a container of OpenAI, which "
                f"{provider} does not have. Remove the option, or choose a model named 'openai/…'."
            )


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


def _domains(filters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the domains of `filters`.

    Raises:
        UserError: There are other filters, which only OpenAI can have.
    """
    for key in filters or {}:
        if key not in {"allowed_domains", "blocked_domains"}:
            raise UserValueError(
                f"WebSearchTool(filters=...) has the key {key!r:.60}, which only OpenAI can have: "
                "expected allowed_domains or blocked_domains. Remove the key."
            )
    return dict(filters or {})


def _check_positive(tool: HostedTool, name: str) -> None:
    value = getattr(tool, name)
    if value is not None and (type(value) is not int or value < 1):
        raise UserValueError(
            f"{type(tool).__name__}({name}=...) is out of range: expected a positive number, got "
            f"{value!r:.60}."
        )


def _check_texts(tool: HostedTool, name: str, content: str) -> None:
    value = getattr(tool, name)
    if not isinstance(value, (list, tuple)) or not all(map(_is_text, cast("list[Any]", value))):
        raise UserTypeError(
            f"{type(tool).__name__}({name}=...) has the wrong form: expected a list of {content}, "
            f"got {value!r:.80}."
        )
    object.__setattr__(tool, name, list(cast("list[str]", value)))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
