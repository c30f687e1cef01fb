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
PAGE: Final = 200
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"


class _Kind(NamedTuple):
    """Resources of one kind: the tool that reads them, the argument that names one, and what it shows."""

    tool: str
    argument: str
    shows: str


_KINDS: Final[Mapping[str, _Kind]] = {
    "collab": _Kind("collab_read", "filepath", "content"),
    "history": _Kind("collab_history", "filepath", "history"),
    "board": _Kind("whiteboard_read", "board", "content"),
}
_LISTED: Final[tuple[tuple[str, Zone], ...]] = (("collab", "collab"), ("board", "board"))


class Resources:
    """The resources of one workspace."""

    def __init__(self, journal: Journal, language: Language) -> None:
        self._journal = journal
        self._texts = catalogue(language)

    def listed(self, after: str | None = None) -> tuple[list[types.Resource], str | None]:
        """Shared files and written boards, by address, and where to go on if there are more."""
        found = [
            each
            for each in sorted(self._all(), key=lambda each: each.uri)
            if after is None or each.uri > after
        ]
        page = found[:PAGE]
        return page, page[-1].uri if len(found) > PAGE else None

    def templates(self) -> list[types.ResourceTemplate]:
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
        self, toolbox: Toolbox, uri: str, is_asked: Callable[[Toolbox, str], bool]
    ) -> types.ReadResourceResult:
        """Raises `MCPError` for an address that is none, for what the toolbox refuses, and where people
        approve of the calls of the tool that reads it (``is_asked``)."""
        kind, _, path = uri.removeprefix(SCHEME).partition("/")
        if not uri.startswith(SCHEME) or kind not in _KINDS or not path:
            raise MCPError(INVALID_PARAMS, self._texts("resource.unknown", uri=uri[:200]))
        tool, argument, shows = _KINDS[kind]
        if is_asked(toolbox, tool):
            raise MCPError(INVALID_PARAMS, self._texts("resource.asked", tool=tool))
        path = unquote(path)
        result = toolbox.dispatch_tool_call(tool, {argument: path})
        if result["success"] is not True:
            raise MCPError(INVALID_PARAMS, str(result["message"]), dict(result))
        shown: Json = result[shows]
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
