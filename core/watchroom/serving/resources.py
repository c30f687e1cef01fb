"""What can be read without a tool: shared files, their histories, and whiteboards, each by its address.

Everything is read through the caller's toolbox, so a resource shows nobody what its tools would not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from watchroom.journal import Journal
from watchroom.model import Json, Zone
from watchroom.texts import Language, catalogue
from watchroom.toolbox import Toolbox

SCHEME: Final = "watchroom://"
PAGE_SIZE: Final = 200
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"


class _ResourceKind(NamedTuple):
    """Resources of one kind: the tool that reads them, its argument that names one, and the field of its
    result that is shown."""

    tool: str
    argument: str
    result_field: str


_KINDS: Final[Mapping[str, _ResourceKind]] = {
    "collab": _ResourceKind("collab_read", "filepath", "content"),
    "history": _ResourceKind("collab_history", "filepath", "history"),
    "board": _ResourceKind("whiteboard_read", "board", "content"),
}
_LISTED: Final[tuple[tuple[str, Zone], ...]] = (("collab", "collab"), ("board", "board"))


class WorkspaceResources:
    """The resources of the workspace of ``journal``, described in ``language``."""

    def __init__(self, journal: Journal, language: Language) -> None:
        self._journal = journal
        self._texts = catalogue(language)

    def list_page(self, after: str | None = None) -> tuple[list[types.Resource], str | None]:
        """Return a page of shared files and written boards with addresses beyond ``after``, in their order,
        and the address to go on after if there are more."""
        found = [
            each
            for each in sorted(self._all(), key=lambda each: each.uri)
            if after is None or each.uri > after
        ]
        page = found[:PAGE_SIZE]
        return page, page[-1].uri if len(found) > PAGE_SIZE else None

    def list_templates(self) -> list[types.ResourceTemplate]:
        """Return how the addresses of each kind of resource are made."""
        return [
            types.ResourceTemplate(
                uri_template=f"{SCHEME}{kind}/{{+{each.argument}}}",
                name=kind,
                description=self._texts(f"resource.{kind}"),
                mime_type=_mime(kind, ""),
            )
            for kind, each in _KINDS.items()
        ]

    def read(
        self, toolbox: Toolbox, uri: str, needs_approval: Callable[[Toolbox, str, Mapping[str, Json]], bool]
    ) -> types.ReadResourceResult:
        """Return the resource at ``uri`` as the agent of ``toolbox`` may read it. Raises `MCPError` for an
        unknown address, for what the toolbox refuses, and where ``needs_approval`` says that people have to
        approve of the calls of the tool that reads it."""
        kind, _, path = uri.removeprefix(SCHEME).partition("/")
        if not uri.startswith(SCHEME) or kind not in _KINDS or not path:
            raise MCPError(INVALID_PARAMS, self._texts("resource.unknown", uri=uri[:200]))
        tool, argument, field = _KINDS[kind]
        path = unquote(path)
        if needs_approval(toolbox, tool, {argument: path}):
            raise MCPError(INVALID_PARAMS, self._texts("resource.asked", tool=tool))
        result = toolbox.dispatch_tool_call(tool, {argument: path})
        if result["success"] is not True:
            raise MCPError(INVALID_PARAMS, str(result["message"]), dict(result))
        shown: Json = result[field]
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)
        contents = types.TextResourceContents(uri=uri, mime_type=_mime(kind, path), text=text)
        return types.ReadResourceResult(contents=[contents])

    def _all(self) -> Iterator[types.Resource]:
        for kind, zone in _LISTED:
            for head in self._journal.heads(zone):
                if not head.deleted:
                    yield types.Resource(
                        uri=f"{SCHEME}{kind}/{quote(head.path)}",
                        name=head.path,
                        description=head.message or None,
                        mime_type=_mime(kind, head.path),
                        size=head.size,
                    )


def _mime(kind: str, path: str) -> str:
    if kind == "history":
        return "application/json"
    return MARKDOWN if kind == "board" or path.endswith(".md") else PLAIN
