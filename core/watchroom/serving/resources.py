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

from watchroom import validation
from watchroom.features.boards.rows import BOARD_ARGUMENT, BOARD_ZONE
from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Row, Zone
from watchroom.texts import Language, catalogue

SCHEME: Final = "watchroom://"
PAGE_SIZE: Final = 200
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"


class _ResourceKind(NamedTuple):
    """A kind of resource: the ``zone`` of its rows, the ``tool`` that reads it, the ``argument`` with its
    name, and the ``result_field`` with its content."""

    zone: Zone
    tool: str
    argument: str
    result_field: str


_KINDS: Final[Mapping[str, _ResourceKind]] = {
    SHARED_FILE_ZONE: _ResourceKind(SHARED_FILE_ZONE, "collab_read", "filepath", "content"),
    "history": _ResourceKind(SHARED_FILE_ZONE, "collab_history", "filepath", "history"),
    BOARD_ZONE: _ResourceKind(BOARD_ZONE, "whiteboard_read", BOARD_ARGUMENT, "content"),
}
_LISTED: Final = (SHARED_FILE_ZONE, BOARD_ZONE)
"""The zones whose current files are listed, each under the kind of its name."""


class ResourceAddress(NamedTuple):
    """The ``kind`` of a resource, and the ``path`` of the file or board that it shows."""

    kind: str
    path: str

    @property
    def zone(self) -> Zone:
        """The zone of the rows that change the resource."""
        return _KINDS[self.kind].zone


def parse_address(uri: str) -> ResourceAddress | None:
    """Return the address in ``uri``; None if it is the address of no resource."""
    kind, _, path = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or kind not in _KINDS or not path:
        return None
    return ResourceAddress(kind, unquote(path))


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
        address = parse_address(uri)
        if address is None:
            raise self._unknown(uri)
        kind, path = address
        _, tool, argument, field = _KINDS[kind]
        if needs_approval(toolbox, tool, {argument: path}):
            raise MCPError(INVALID_PARAMS, self._texts("resource.asked", tool=tool), {"uri": uri})
        result = toolbox.dispatch_tool_call(tool, {argument: path})
        if result["success"] is not True:
            raise MCPError(INVALID_PARAMS, str(result["message"]), {**result, "uri": uri})
        shown: Json = result[field]
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)
        contents = types.TextResourceContents(uri=uri, mime_type=_mime(kind, path), text=text)
        return types.ReadResourceResult(contents=[contents])

    def is_readable(
        self, toolbox: Toolbox, uri: str, needs_approval: Callable[[Toolbox, str, Mapping[str, Json]], bool]
    ) -> bool:
        """Return whether the agent of ``toolbox`` can read the resource at ``uri``, also if it does not exist
        yet. Nothing is recorded. Raise `JournalError`."""
        address = parse_address(uri)
        if address is None or validation.find_path_flaw(address.path) is not None:
            return False
        kind = _KINDS[address.kind]
        arguments: dict[str, Json] = {kind.argument: address.path}
        return toolbox.is_permitted(kind.tool, arguments) and not needs_approval(
            toolbox, kind.tool, arguments
        )

    def changes_list(self, row: Row) -> bool:
        """Return whether ``row`` adds a resource to the list, or removes one. Raise `JournalError`."""
        if row.zone not in _LISTED or row.outcome != "ok" or row.version is None:
            return False
        if row.deleted or row.version == 1:
            return True
        before = self._journal.version(row.zone, row.path, row.version - 1)
        return before is not None and before.deleted

    def _unknown(self, uri: str) -> MCPError:
        return MCPError(INVALID_PARAMS, self._texts("resource.unknown", uri=uri[:200]), {"uri": uri})

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
