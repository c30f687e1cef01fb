"""The whiteboards of a team: read, write, append, rewrite a section, restore (BOARDS-6).

Every change is one version in the journal, written while nobody else holds the board's lock or writes. A text
based on an older version is refused, with all data for a recovery.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from watchroom import validation
from watchroom.errors import InvalidName
from watchroom.features.boards.locks import LOCK_SECONDS, LOCK_TIMEOUT
from watchroom.features.boards.rows import SECTION, BoardLock
from watchroom.features.boards.service import Boards
from watchroom.features.config.registry import Registry
from watchroom.features.files.rows import FileVersion
from watchroom.kernel.call_context import CallContext
from watchroom.model import HUMAN_PREFIX, Row, Write
from watchroom.texts import Catalogue, catalogue

from watchroom_whiteboards import sections
from watchroom_whiteboards.boards import Board, list_boards
from watchroom_whiteboards.errors import BoardDenied, BoardNotFound
from watchroom_whiteboards.permissions import Act, is_allowed
from watchroom_whiteboards.section_rewrite import RewrittenSection, rewrite_section
from watchroom_whiteboards.templates import render_template
from watchroom_whiteboards.texts import TEXTS

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

PREPARED_BYTES: Final = 32 * 1024
"""Minimum bytes of a board that is parsed before the lock is taken, so that other writers wait less."""
_MAX_MESSAGE_CHARACTERS: Final = 120
T = TypeVar("T")


class BoardText(NamedTuple):
    """The ``content`` of ``version`` of ``board``, or only of its ``section``.

    - ``current``: the newest version.
    - ``row``: the row of ``version``. Before the first write, ``content`` is the template, ``version`` is 0,
      and ``row`` is None.
    - ``lock``: the lock that `Whiteboards.read` took, if any.
    """

    board: Board
    content: str
    version: int
    current: int
    row: Row | None
    section: str = ""
    lock: BoardLock | None = None


class Whiteboards:
    """The boards of one workspace. Thread-safe. Create it with `Whiteboards.of`.

    In all methods:

    - ``call``: the actor and the tool.
    - ``name``: a board's name.
    - ``wait``: seconds to wait for another actor's lock.

    Refusals raise a `WatchroomError`.

    Example::

        boards = Whiteboards.of(workspace)
        boards.append(CallContext("alice", "whiteboard_append"), "global", "Outline agreed.")
        print(boards.read(CallContext("bob"), "global").content)
    """

    def __init__(self, boards: Boards, registry: Registry) -> None:
        self._boards = boards
        self._registry = registry

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """Return the boards of an open ``workspace``."""
        return cls(workspace.boards, workspace.registry)

    def boards(self, call: CallContext) -> list[Board]:
        """Return the boards that the caller can read: the team's boards, and boards that were written before
        the team changed."""
        config = self._registry.current(call)
        # Rows that were not written by the tools can have names that are invalid for boards.
        written = [Board.find(head.path) for head in self._boards.heads()]
        return [
            each
            for each in dict.fromkeys([*list_boards(config), *written])
            if each is not None and is_allowed("read", call.actor, each, config)
        ]

    def named(self, call: CallContext, name: str) -> Board:
        """Return the board ``name``, if the caller can read it. Raise `BoardNotFound`, `BoardDenied`."""
        return self._require_permission("read", call, name)

    def own(self, call: CallContext) -> Board:
        """Return the caller's own board, which is the global board for a person."""
        agent = self._registry.current(call).agents.get(call.actor)
        return Board("global") if agent is None else Board.of(agent)

    def read(
        self,
        call: CallContext,
        name: str,
        *,
        version: int | None = None,
        section: str | None = None,
        hold: bool = False,
        wait: float = LOCK_TIMEOUT,
    ) -> BoardText:
        """Read the board ``name``, or one ``section`` of it. The read is recorded.

        - ``version``: an earlier version, default: the current one.
        - ``hold``: first take the board's lock until the caller's next write, so that nobody else writes in
          between.

        Raise `BoardNotFound`, `BoardDenied`, `BoardLeased`, `VersionNotFound`, `SectionNotFound`,
        `SectionAmbiguous`.
        """
        board = self._require_permission("read", call, name)
        lock = None
        if hold:
            self._require_permission("append", call, name)
            # Refuse an unreadable version or section before taking the lock.
            self._load(board, version, section)
            lock = self._boards.locks.acquire(call, board.name, wait=wait, ends_with_write=True)
        found, shown, text = self._load(board, version, section)
        number = (found.row.version or 0) if found else 0
        current = found.current if found else 0
        self._boards.note_reading(call, board.name, number, section=shown, is_current=number == current)
        return BoardText(board, text, number, current, found.row if found else None, shown, lock)

    def _load(
        self, board: Board, version: int | None, section: str | None
    ) -> tuple[FileVersion | None, str, str]:
        """Return a version of the board (None if it was never written), the name of its section, and the
        text of the section or of the whole board."""
        found = (
            self._boards.current(board.name) if version is None else self._boards.version(board.name, version)
        )
        if section is None:
            return found, "", self._board_text(board, found)
        data = self._board_text(board, found).encode()
        everything = sections.parse_sections(data)
        part = sections.find_section(data, board.name, section, everything)
        # Several sections can have the same path. Then the name identifies the section, and the read counts
        # for none of them.
        is_duplicate = sections.is_duplicate(part, everything)
        shown = sections.section_name(data, part, everything) if is_duplicate else sections.section_path(part)
        return found, shown, sections.section_text(data, part)

    def write(
        self,
        call: CallContext,
        name: str,
        content: str,
        expected: int,
        *,
        message: str = "",
        wait: float = LOCK_TIMEOUT,
    ) -> Row:
        """Replace the text of the board ``name`` by ``content``. Return the row of the new version.

        - ``expected``: the version that the text is based on, 0 for none, `UNCHECKED` for any.
        - ``message``: a description of the change.

        Raise `VersionConflict`, `BoardLeased`, `BoardDenied`, `BoardNotFound`, `TooLarge`, `NotText`.
        """
        board = self._require_permission("write", call, name)
        validation.encode_text(content)
        draft = call.write("board", board.name, content, message, expected)
        return self._boards.write(call, board.name, lambda current: draft, wait=wait)

    def append(
        self,
        call: CallContext,
        name: str,
        content: str,
        *,
        section: str | None = None,
        wait: float = LOCK_TIMEOUT,
    ) -> Row:
        """Append ``content`` to the board ``name``. Return the row of the new version.

        ``section``: append text to the end of this section, which needs write permission. Default: append a
        signed entry to the end of the board (BOARDS-6.1).

        An append never conflicts. Raise `SectionNotFound`, `SectionAmbiguous`, `InvalidSection`, and the
        errors of `write` except `VersionConflict`.
        """
        board = self._require_permission("append" if section is None else "write", call, name)
        validation.encode_text(content)
        if section is None:
            sections.check_entry(board.name, content)
        message = _first_line(content)

        def change_text(current: FileVersion | None) -> str:
            data = self._board_text(board, current).encode()
            if section is None:
                return sections.close_text(data)
            everything = sections.parse_sections(data)
            found = sections.find_section(data, board.name, section, everything)
            return sections.append_to_section(data, found, content, everything)

        prepared = self._prepare(call, board, change_text)

        def draft(current: FileVersion | None) -> Write:
            text = prepared(current)
            if section is None:
                text = sections.append_entry(text, self._sign(call.actor, content))
            return call.write("board", board.name, text, message, _version(current))

        return self._boards.write(call, board.name, draft, wait=wait)

    def update_section(
        self,
        call: CallContext,
        name: str,
        section: str,
        content: str,
        *,
        message: str = "",
        seen: int = 0,
        expected: int | None = None,
        wait: float = LOCK_TIMEOUT,
    ) -> Row:
        """Replace the body of ``section`` of the board ``name`` by ``content``. Return the new row.

        All other text is unchanged, byte for byte. The update conflicts only with changes of the section
        since the caller read it.

        - ``message``: a description of the change, default: the section's path.
        - ``seen``: the version in which the caller read the whole board. A later read of the section takes
          precedence.
        - ``expected``: the section must be unchanged since this version; `UNCHECKED` skips the check. It
          overrides ``seen``.

        Raise the errors of `append` for a section, and `VersionConflict`.
        """
        board = self._require_permission("write", call, name)
        validation.encode_text(content)

        def last_read_version(path: str) -> int:
            if expected is not None:
                return expected
            return max(seen, self._boards.last_seen_section(call.actor, board.name, path) if path else 0)

        def text_of(version: int) -> bytes:
            text = self._boards.version(board.name, version).content if version else self._template(board)
            return text.encode()

        def revise(current: FileVersion | None) -> RewrittenSection:
            now = self._board_text(board, current).encode()
            return rewrite_section(
                now, _version(current), board.name, section, content, last_read_version, text_of
            )

        prepared = self._prepare(call, board, revise)

        def draft(current: FileVersion | None) -> Write:
            text, path, base = prepared(current)
            detail = {SECTION: path}
            why = message or path[:_MAX_MESSAGE_CHARACTERS]
            return call.write("board", board.name, text, why, base, detail)

        return self._boards.write(call, board.name, draft, wait=wait)

    def history(self, call: CallContext, name: str, *, limit: int | None = None) -> list[Row]:
        """Return the versions of the board ``name``, or the newest ``limit``, oldest first. The read is not
        recorded. Raise `BoardNotFound`, `BoardDenied`."""
        return self._boards.history(self._require_permission("read", call, name).name, limit=limit)

    def version(self, call: CallContext, name: str, version: int) -> FileVersion:
        """Return the ``version`` of the board ``name``. The read is not recorded. Raise `VersionNotFound`,
        `BoardNotFound`, `BoardDenied`."""
        return self._boards.version(self._require_permission("read", call, name).name, version)

    def restore(
        self,
        call: CallContext,
        name: str,
        version: int,
        *,
        message: str,
        expected: int | None = None,
        wait: float = LOCK_TIMEOUT,
    ) -> Row:
        """Write the text of ``version`` of the board ``name`` as a new version. Return its row.

        - ``message``: the reason.
        - ``expected``: the version that must be current, default: any.

        Raise `VersionNotFound`, and the errors of `write`.
        """
        board = self._require_permission("write", call, name)
        text = self._boards.version(board.name, version).content

        def draft(current: FileVersion | None) -> Write:
            base = _version(current) if expected is None else expected
            return call.write("board", board.name, text, message, base)

        return self._boards.write(call, board.name, draft, wait=wait)

    def hold(
        self,
        call: CallContext,
        name: str,
        *,
        seconds: float = LOCK_SECONDS,
        wait: float = LOCK_TIMEOUT,
    ) -> BoardLock:
        """Lock the board ``name`` for ``seconds`` (default 5), or extend the caller's own lock. Raise
        `BoardLeased`, `BoardDenied`, `BoardNotFound`."""
        board = self._require_permission("append", call, name)
        return self._boards.locks.acquire(call, board.name, seconds=seconds, wait=wait)

    def release(self, lock: BoardLock) -> bool:
        """End ``lock``. Return False if it had already ended."""
        return self._boards.locks.release(lock)

    def _require_permission(self, act: Act, call: CallContext, name: str) -> Board:
        config = self._registry.current(call)
        try:
            board = Board.named(name)
        except InvalidName as error:
            known = ", ".join(each.name for each in self.boards(call))
            raise BoardNotFound(board=error.values["given"], known=known) from error
        if board not in list_boards(config) and self._boards.current(board.name) is None:
            known = ", ".join(each.name for each in self.boards(call))
            raise BoardNotFound(board=name, known=known)
        if not is_allowed(act, call.actor, board, config):
            rule = f"{'read' if act == 'read' else 'write'}_{board.kind}"
            raise BoardDenied(board=name, rule=rule, own=self.own(call).name)
        return board

    def _prepare(
        self, call: CallContext, board: Board, work: Callable[[FileVersion | None], T]
    ) -> Callable[[FileVersion | None], T]:
        """Run ``work`` in advance for the current version of a long board, to shorten the lock. Return a
        function that returns its result."""
        now = self._boards.current(board.name)
        if now is None or (now.row.size or 0) < PREPARED_BYTES:
            return work
        self._boards.flush_readings(call.actor)
        done = work(now)
        return lambda current: done if current and current.row == now.row else work(current)

    def _board_text(self, board: Board, current: FileVersion | None) -> str:
        return current.content if current else self._template(board)

    def _template(self, board: Board) -> str:
        config = self._registry.current()
        return render_template(board, config, config.language)

    def _sign(self, actor: str, content: str) -> str:
        texts = self._texts()
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # A person's name can contain an underscore, which is markup in Markdown.
        name = actor.replace("_", "\\_") if actor.startswith(HUMAN_PREFIX) else actor
        return f"{texts('entry.heading', time=now)}\n{texts('entry.author', name=name)}\n\n{content.strip()}"

    def _texts(self) -> Catalogue:
        return catalogue(self._registry.current().language, TEXTS)


def _version(current: FileVersion | None) -> int:
    return current.current if current else 0


def _first_line(content: str) -> str:
    line = content.strip().partition("\n")[0].strip()
    return validation.escape_unstorable(line, _MAX_MESSAGE_CHARACTERS)
