"""A whiteboard as the source of a buffer (EDIT-5.3). The core finds this module through an entry point."""

from __future__ import annotations

from watchroom.algorithms.editing import ReadOnlySourceError, SourceText, StaleSourceError
from watchroom.errors import VersionConflict
from watchroom.features.buffers.sources import (
    FLUSH,
    BoundSource,
    OutsideEditOverlay,
    SourceServices,
    version_of,
)
from watchroom.kernel.call_context import CallContext

from watchroom_whiteboards.errors import BoardDenied
from watchroom_whiteboards.whiteboards import Whiteboards


class BoardSource:
    """A board as the source of a buffer. A flush replaces the whole board, if the actor can write it.

    ``services``: the services of the workspace.
    """

    def __init__(self, boards: Whiteboards, services: SourceServices, call: CallContext, name: str) -> None:
        self._boards = boards
        self._zone = services.boards
        self._edits = OutsideEditOverlay(services, "board", name)
        self._call = call
        self._name = name

    def version(self) -> int:
        """The current version, 0 if the board was never written."""
        return version_of(self._zone.head(self._name))

    def edit(self) -> int:
        """The row of the external edit on disk, 0 if there is none."""
        return self._edits.row_number()

    def read(self) -> SourceText:
        """The board's text and version."""
        found = self._boards.read(self._call, self._name)
        return self._edits.apply(SourceText(found.content, found.version))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Replace the text of the board. Return the new version.

        - ``expected``: the version that must be current.
        - ``message``: a description of the change.
        - ``edit``: the row of the external edit that must be on disk, 0 for none.

        Raise `StaleSourceError`, and `ReadOnlySourceError` if the caller cannot write the board.
        """
        self._edits.check(edit)
        try:
            row = self._boards.write(self._call.with_tool(FLUSH), self._name, text, expected, message=message)
        except VersionConflict as conflict:
            raise StaleSourceError from conflict
        except BoardDenied as denied:
            raise ReadOnlySourceError(denied) from denied
        return version_of(row)


def open_board(services: SourceServices, call: CallContext, path: str) -> BoundSource:
    """Bind the board ``path`` to a buffer of the caller. ``services``: the services of the workspace."""
    boards = Whiteboards(services.boards, services.registry)
    board = boards.named(call, path)
    return BoundSource("board", board.name, BoardSource(boards, services, call, board.name))
