"""MCP resources: shared files, their histories, and whiteboards.

Resources are read through the caller's toolbox, so they grant no more access than the tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from watchroom.features.boards.rows import BOARD_ARGUMENT, BOARD_ZONE
from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.kernel.journal import Journal
from watchroom.model import Json
from watchroom.texts import Language, catalogue

SCHEME: Final = "watchroom://"
PAGE_SIZE: Final = 200
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"


class _ResourceKind(NamedTuple):
    """A kind of resource: the ``tool`` that reads it, the ``argument`` with its name, and the
    ``result_field`` with its content."""

    tool: str
    argument: str
    result_field: str


_KINDS: Final[Mapping[str, _ResourceKind]] = {
    SHARED_FILE_ZONE: _ResourceKind("collab_read", "filepath", "content"),
    "history": _ResourceKind("collab_history", "filepath", "history"),
    BOARD_ZONE: _ResourceKind("whiteboard_read", BOARD_ARGUMENT, "content"),
}
_LISTED: Final = (SHARED_FILE_ZONE, BOARD_ZONE)
"""The zones whose current files are listed, each under the kind of its name."""


class WorkspaceResources:
    """The resources in ``journal``, with descriptions in ``language``."""

    def __init__(self, journal: Journal, language: Language) -> None:
        self._journal = journal
        self._texts = catalogue(language)

    def list_page(self, after: str | None = None) -> tuple[list[types.Resource], str | None]:
        """Return a page of shared files and boards, sorted by address, and the cursor of the next page.

        ``after``: the cursor, None for the first page. The cursor of the last page is None.
        """
        found = [
            each
            for each in sorted(self._all(), key=lambda each: each.uri)
            if after is None or each.uri > after
        ]
        page = found[:PAGE_SIZE]
        return page, page[-1].uri if len(found) > PAGE_SIZE else None

    def list_templates(self) -> list[types.ResourceTemplate]:
        """Return the template of the addresses of each kind."""
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
        """Return the resource at ``uri`` for the agent of ``toolbox``.

        Raise `MCPError` if the address is unknown, if the toolbox refuses the call, or if ``needs_approval``
        returns True for the call.
        """
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
        for zone in _LISTED:
            for head in self._journal.heads(zone):
                if not head.deleted:
                    yield types.Resource(
                        uri=f"{SCHEME}{zone}/{quote(head.path)}",
                        name=head.path,
                        description=head.message or None,
                        mime_type=_mime(zone, head.path),
                        size=head.size,
                    )


def _mime(kind: str, path: str) -> str:
    if kind == "history":
        return "application/json"
    return MARKDOWN if kind == BOARD_ZONE or path.endswith(".md") else PLAIN
