"""A whiteboard as the source of a buffer (EDIT-5.3). The core finds it by an entry point."""

from __future__ import annotations

from watchroom.editing import ReadOnlySourceError, SourceText, StaleSourceError
from watchroom.errors import VersionConflict
from watchroom.zones.buffers.sources import FLUSH, BoundSource, OutsideEditOverlay, SourceZones, version_of

from watchroom_whiteboards.errors import BoardDenied
from watchroom_whiteboards.whiteboards import Whiteboards


class BoardSource:
    """The board ``name`` of ``boards`` as the source of a buffer of ``actor``, who may read it.

    ``zones`` are the zones of the workspace. A flush replaces the whole board, if the actor may do that.
    """

    def __init__(self, boards: Whiteboards, zones: SourceZones, actor: str, name: str) -> None:
        self._boards = boards
        self._zone = zones.boards
        self._edits = OutsideEditOverlay(zones, "board", name)
        self._actor = actor
        self._name = name

    def version(self) -> int:
        """The current version; 0 if the board was never written."""
        return version_of(self._zone.head(self._name))

    def edit(self) -> int:
        """The number of edits made by hand that are not versions yet."""
        return self._edits.row_number()

    def read(self) -> SourceText:
        """The board's text and version."""
        found = self._boards.read(self._actor, self._name)
        return self._edits.apply(SourceText(found.content, found.version))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Replace the board by ``text``, if its version is ``expected`` and its edits by hand are ``edit``.

        ``message`` says what changed. Returns the new version. Raises `StaleSourceError`,
        `ReadOnlySourceError`.
        """
        self._edits.check(edit)
        try:
            row = self._boards.write(self._actor, self._name, text, expected, tool=FLUSH, message=message)
        except VersionConflict as conflict:
            raise StaleSourceError from conflict
        except BoardDenied as denied:
            raise ReadOnlySourceError(denied) from denied
        return version_of(row)


def open_board(zones: SourceZones, actor: str, path: str) -> BoundSource:
    """Bind the board ``path`` to a buffer of ``actor``; ``zones`` are the zones of the workspace.

    Raises `BoardNotFound`, `BoardDenied`.
    """
    boards = Whiteboards(zones.boards, zones.registry)
    board = boards.named(actor, path)
    return BoundSource("board", board.name, BoardSource(boards, zones, actor, board.name))
