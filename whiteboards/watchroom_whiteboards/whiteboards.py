"""The whiteboards of a team: read, write, append, rewrite a section, restore (BOARDS-6).

Every change is one version in the journal, made while nobody else holds the board's lease and nobody else
writes. A text that started from an older version is refused with everything needed to recover.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from watchroom import validation
from watchroom.errors import InvalidName
from watchroom.model import HUMAN_PREFIX, Row, Write
from watchroom.registry import Registry
from watchroom.texts import Catalogue, catalogue
from watchroom.zones import BoardZone, FileVersion, Lease
from watchroom.zones.boards import SECTION
from watchroom.zones.leases import LEASE_SECONDS, LEASE_WAIT_SECONDS

from watchroom_whiteboards import sections
from watchroom_whiteboards.boards import Board, list_boards
from watchroom_whiteboards.errors import BoardDenied, BoardNotFound
from watchroom_whiteboards.permissions import Act, is_allowed
from watchroom_whiteboards.section_rewrite import RewrittenSection, rewrite_section
from watchroom_whiteboards.templates import render_template
from watchroom_whiteboards.texts import TEXTS

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

LONG: Final = 32 * 1024
"""Boards of more bytes are looked through before it is their writer's turn."""
_MESSAGE: Final = 120
T = TypeVar("T")


class BoardText(NamedTuple):
    """What `Whiteboards.read` returns: the ``content`` of ``version`` of ``board``, or of its ``section``
    only.

    ``current`` is the newest version and ``row`` that of ``version``. Before the first write the content is
    the template, ``version`` 0 and ``row`` None. ``lease`` is the one that was asked for.
    """

    board: Board
    content: str
    version: int
    current: int
    row: Row | None
    section: str = ""
    lease: Lease | None = None


class Whiteboards:
    """The boards of one workspace, as `Whiteboards.of` returns them. May be used from any thread.

    ``zone`` and ``registry`` are the workspace's. In all methods ``actor`` is an agent's id or
    ``human:NAME``, ``name`` a board's name, ``tool`` the name recorded with the row, and ``wait`` how many
    seconds to wait for a board that somebody else holds. What is refused raises a `WatchroomError`.

        boards = Whiteboards.of(workspace)
        boards.append("alice", "global", "Outline agreed.", tool="whiteboard_append")
        print(boards.read("bob", "global").content)
    """

    def __init__(self, zone: BoardZone, registry: Registry) -> None:
        self._zone = zone
        self._registry = registry

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """The boards of an open ``workspace``."""
        return cls(workspace.boards, workspace.registry)

    def boards(self, actor: str) -> list[Board]:
        """The boards that ``actor`` may read: the team's, and those that were written before the team
        changed."""
        config = self._registry.current()
        # Rows written past the tools can name boards that no board can be called.
        written = [Board.find(head.path) for head in self._zone.heads()]
        return [
            each
            for each in dict.fromkeys([*list_boards(config), *written])
            if each is not None and is_allowed("read", actor, each, config)
        ]

    def named(self, actor: str, name: str) -> Board:
        """The board called ``name``, which ``actor`` may read. Raises `BoardNotFound`, `BoardDenied`."""
        return self._require_permission("read", actor, name)

    def own(self, actor: str) -> Board:
        """The board that ``actor`` keeps; for a person the global one."""
        agent = self._registry.current().agents.get(actor)
        return Board("global") if agent is None else Board.of(agent)

    def read(
        self,
        actor: str,
        name: str,
        *,
        version: int | None = None,
        section: str | None = None,
        hold: bool = False,
        wait: float = LEASE_WAIT_SECONDS,
    ) -> BoardText:
        """Read the board ``name`` as ``actor``: the current ``version`` or an earlier one, whole or one
        ``section``.

        ``hold`` takes the board's lease first, which ends with the actor's next write, so that nobody else
        writes in between; ``wait`` seconds are waited for it. Raises `BoardNotFound`, `BoardDenied`,
        `BoardLeased`, `VersionNotFound`, `SectionNotFound`, `SectionAmbiguous`.
        """
        board = self._require_permission("read", actor, name)
        lease = None
        if hold:
            self._require_permission("append", actor, name)
            # What cannot be read is refused before anybody is held off.
            self._load(board, version, section)
            lease = self._zone.leases.acquire(actor, board.name, wait=wait, ends_with_write=True)
        found, shown, text = self._load(board, version, section)
        number = (found.row.version or 0) if found else 0
        current = found.current if found else 0
        self._zone.note_reading(actor, board.name, number, section=shown, is_current=number == current)
        return BoardText(board, text, number, current, found.row if found else None, shown, lease)

    def _load(
        self, board: Board, version: int | None, section: str | None
    ) -> tuple[FileVersion | None, str, str]:
        """A version of a board, None where nothing was written; where its section stands, and the text."""
        found = self._zone.current(board.name) if version is None else self._zone.version(board.name, version)
        if section is None:
            return found, "", self._board_text(board, found)
        data = self._board_text(board, found).encode()
        everything = sections.parse_sections(data)
        part = sections.find_section(data, board.name, section, everything)
        # Of several sections of one path the name tells which was read; it counts as a reading of none.
        is_duplicate = sections.is_duplicate(part, everything)
        shown = sections.section_name(data, part, everything) if is_duplicate else sections.section_path(part)
        return found, shown, sections.section_text(data, part)

    def write(
        self,
        actor: str,
        name: str,
        content: str,
        expected: int,
        *,
        tool: str,
        message: str = "",
        wait: float = LEASE_WAIT_SECONDS,
    ) -> Row:
        """Replace the text of the board ``name`` by ``content`` as ``actor``; returns the row of the new
        version.

        ``expected`` is the version that the text started from (0: never written, `UNCHECKED`: any),
        ``message`` what changed. ``tool`` and ``wait`` as for the class. Raises `VersionConflict`,
        `BoardLeased`, `BoardDenied`, `BoardNotFound`, `TooLarge`, `NotText`.
        """
        board = self._require_permission("write", actor, name)
        validation.encode_text(content)
        draft = Write(actor, tool, "board", board.name, content, message, expected)
        return self._zone.write(actor, board.name, lambda current: draft, wait=wait)

    def append(
        self,
        actor: str,
        name: str,
        content: str,
        *,
        tool: str,
        section: str | None = None,
        wait: float = LEASE_WAIT_SECONDS,
    ) -> Row:
        """Add ``content`` to the board ``name`` as ``actor``; returns the row of the new version.

        Without ``section`` it becomes a signed entry at the end (BOARDS-6.1), else text at the end of that
        section, which needs the right to write. Never a conflict: it is added to the board as it is then.
        ``tool`` and ``wait`` as for the class. Raises `SectionNotFound`, `SectionAmbiguous`, `InvalidSection`
        and, but for `VersionConflict`, what `write` raises.
        """
        board = self._require_permission("append" if section is None else "write", actor, name)
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

        prepared = self._prepare(board, change_text)

        def draft(current: FileVersion | None) -> Write:
            text = prepared(current)
            if section is None:
                text = sections.append_entry(text, self._sign(actor, content))
            return Write(actor, tool, "board", board.name, text, message, _version(current))

        return self._zone.write(actor, board.name, draft, wait=wait)

    def update_section(
        self,
        actor: str,
        name: str,
        section: str,
        content: str,
        *,
        tool: str,
        seen: int = 0,
        expected: int | None = None,
        wait: float = LEASE_WAIT_SECONDS,
    ) -> Row:
        """Replace the body of ``section`` of the board ``name`` by ``content`` as ``actor``; returns the new
        row.

        Everything else stays byte for byte. If the section has changed since the actor read it, that is a
        conflict; changes elsewhere are none. ``seen`` is the version in which the actor read the whole board;
        a later reading of the section counts instead. ``expected`` overrides both (`UNCHECKED`: any).
        ``tool`` and ``wait`` as for the class. Raises what `append` raises for a section, and
        `VersionConflict`.
        """
        board = self._require_permission("write", actor, name)
        validation.encode_text(content)

        def last_read_version(path: str) -> int:
            if expected is not None:
                return expected
            return max(seen, self._zone.last_seen_section(actor, board.name, path) if path else 0)

        def text_of(version: int) -> bytes:
            text = self._zone.version(board.name, version).content if version else self._template(board)
            return text.encode()

        def revise(current: FileVersion | None) -> RewrittenSection:
            now = self._board_text(board, current).encode()
            return rewrite_section(
                now, _version(current), board.name, section, content, last_read_version, text_of
            )

        prepared = self._prepare(board, revise)

        def draft(current: FileVersion | None) -> Write:
            text, path, base = prepared(current)
            detail = {SECTION: path}
            return Write(actor, tool, "board", board.name, text, path[:_MESSAGE], base, detail)

        return self._zone.write(actor, board.name, draft, wait=wait)

    def history(self, actor: str, name: str, *, limit: int | None = None) -> list[Row]:
        """The versions of the board ``name`` that ``actor`` may read, oldest first; only the newest ``limit``
        if given."""
        return self._zone.history(self._require_permission("read", actor, name).name, limit=limit)

    def version(self, actor: str, name: str, version: int) -> FileVersion:
        """The ``version`` of the board ``name`` for ``actor``, without recording that it was read.

        Raises `VersionNotFound`, `BoardNotFound`, `BoardDenied`.
        """
        return self._zone.version(self._require_permission("read", actor, name).name, version)

    def restore(
        self,
        actor: str,
        name: str,
        version: int,
        *,
        tool: str,
        message: str,
        expected: int | None = None,
        wait: float = LEASE_WAIT_SECONDS,
    ) -> Row:
        """Make ``version`` of the board ``name`` the newest again as ``actor``; returns the row. History
        stays.

        ``message`` says why, ``expected`` is the current version as the actor knows it (None: any). ``tool``
        and ``wait`` as for the class. Raises `VersionNotFound` and what `write` raises.
        """
        board = self._require_permission("write", actor, name)
        text = self._zone.version(board.name, version).content

        def draft(current: FileVersion | None) -> Write:
            base = _version(current) if expected is None else expected
            return Write(actor, tool, "board", board.name, text, message, base)

        return self._zone.write(actor, board.name, draft, wait=wait)

    def hold(
        self, actor: str, name: str, *, seconds: float = LEASE_SECONDS, wait: float = LEASE_WAIT_SECONDS
    ) -> Lease:
        """Take the lease of the board ``name`` for ``actor``, for ``seconds``, or extend the actor's own.

        ``wait`` seconds are waited while somebody else has it. Raises `BoardLeased`, `BoardDenied`,
        `BoardNotFound`.
        """
        board = self._require_permission("append", actor, name)
        return self._zone.leases.acquire(actor, board.name, seconds=seconds, wait=wait)

    def release(self, lease: Lease) -> bool:
        """End ``lease``; False if it had ended already."""
        return self._zone.leases.release(lease)

    def _require_permission(self, act: Act, actor: str, name: str) -> Board:
        config = self._registry.current()
        try:
            board = Board.named(name)
        except InvalidName as error:
            known = ", ".join(each.name for each in self.boards(actor))
            raise BoardNotFound(board=error.values["given"], known=known) from error
        if board not in list_boards(config) and self._zone.current(board.name) is None:
            known = ", ".join(each.name for each in self.boards(actor))
            raise BoardNotFound(board=name, known=known)
        if not is_allowed(act, actor, board, config):
            rule = f"{'read' if act == 'read' else 'write'}_{board.kind}"
            raise BoardDenied(board=name, rule=rule, own=self.own(actor).name)
        return board

    def _prepare(
        self, board: Board, work: Callable[[FileVersion | None], T]
    ) -> Callable[[FileVersion | None], T]:
        """``work`` on a board as it is, done before its turn to write comes where the text is long: in its
        turn nobody else can write, and it takes a while."""
        now = self._zone.current(board.name)
        if now is None or (now.row.size or 0) < LONG:
            return work
        self._zone.flush_readings()
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
        # An agent's id holds nothing that Markdown takes for a mark; a person's name may.
        name = actor.replace("_", "\\_") if actor.startswith(HUMAN_PREFIX) else actor
        return f"{texts('entry.heading', time=now)}\n{texts('entry.author', name=name)}\n\n{content.strip()}"

    def _texts(self) -> Catalogue:
        return catalogue(self._registry.current().language, TEXTS)


def _version(current: FileVersion | None) -> int:
    return current.current if current else 0


def _first_line(content: str) -> str:
    line = content.strip().partition("\n")[0].strip()
    return validation.escape_unstorable(line, _MESSAGE)
