"""The whiteboards of a team: read, written, appended to and mended, by whoever may (spec 3 §6).

Every change is one version in the journal, made while nobody else's lease holds the board and while nobody
else writes. A text that started from an older version is refused with everything needed to recover.
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
from watchroom.zones.leases import PATIENCE, SECONDS

from watchroom_whiteboards import sections
from watchroom_whiteboards.boards import Board, boards_of
from watchroom_whiteboards.errors import BoardDenied, BoardNotFound
from watchroom_whiteboards.permissions import Act, may
from watchroom_whiteboards.revising import Revised, revised
from watchroom_whiteboards.templates import template
from watchroom_whiteboards.texts import TEXTS

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

LONG: Final = 32 * 1024
"""Boards of more bytes are looked through before it is their writer's turn."""
_MESSAGE: Final = 120
T = TypeVar("T")


class BoardText(NamedTuple):
    """A board as it is read: of ``version``, or only the ``section`` of that title in it. ``version`` is 0
    and ``row`` None where nothing was written yet; the text is its template then."""

    board: Board
    content: str
    version: int
    current: int
    row: Row | None
    section: str = ""
    lease: Lease | None = None


class Whiteboards:
    """The boards of one workspace. May be used from any thread; raises what it refuses (`WatchroomError`).

    ``wait`` is how many seconds a writer waits for a board that somebody else holds.
    """

    def __init__(self, zone: BoardZone, registry: Registry) -> None:
        self._zone = zone
        self._registry = registry

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """The boards of an open workspace."""
        return cls(workspace.boards, workspace.registry)

    def boards(self, actor: str) -> list[Board]:
        """The boards that the actor may read: the team's, and those that were written before it changed."""
        config = self._registry.current()
        written = [Board.named(head.path) for head in self._zone.heads()]
        return [
            each for each in dict.fromkeys([*boards_of(config), *written]) if may("read", actor, each, config)
        ]

    def named(self, actor: str, name: str) -> Board:
        """The board of that name, which the actor may read. Raises `BoardNotFound`, `BoardDenied`."""
        return self._allowed("read", actor, name)

    def own(self, actor: str) -> Board:
        """The board that an agent keeps; of a person the global one."""
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
        wait: float = PATIENCE,
    ) -> BoardText:
        """A board, an earlier version of it, or a section. ``hold`` takes its lease first, which ends with
        the actor's next write: nobody else writes in between. Raises `BoardNotFound`, `BoardDenied`,
        `BoardLeased`, `VersionNotFound`, `SectionNotFound`, `SectionAmbiguous`."""
        board = self._allowed("read", actor, name)
        lease = None
        if hold:
            self._allowed("append", actor, name)
            # What cannot be read is refused before anybody is held off.
            self._found(board, version, section)
            lease = self._zone.leases.acquire(actor, board.name, wait=wait, ends_with_write=True)
        found, shown, text = self._found(board, version, section)
        number = (found.row.version or 0) if found else 0
        current = found.current if found else 0
        self._zone.note_reading(actor, board.name, number, section=shown, is_current=number == current)
        return BoardText(board, text, number, current, found.row if found else None, shown, lease)

    def _found(
        self, board: Board, version: int | None, section: str | None
    ) -> tuple[FileVersion | None, str, str]:
        """A version of a board, None where nothing was written; where its section stands, and the text."""
        found = self._zone.current(board.name) if version is None else self._zone.version(board.name, version)
        if section is None:
            return found, "", self._text(board, found)
        data = self._text(board, found).encode()
        everything = sections.sections(data)
        part = sections.find(data, board.name, section, everything)
        # Of several sections of one path the name tells which was read; it counts as a reading of none.
        is_twin = sections.is_twin(part, everything)
        shown = sections.name_of(data, part, everything) if is_twin else sections.path_of(part)
        return found, shown, sections.whole(data, part)

    def write(
        self,
        actor: str,
        name: str,
        content: str,
        expected: int,
        *,
        tool: str,
        message: str = "",
        wait: float = PATIENCE,
    ) -> Row:
        """Replace a board's text. ``expected`` 0: nothing was written yet; `UNCHECKED`: whatever is there.
        Raises `Conflict`, `BoardLeased`, `BoardDenied`, `BoardNotFound`, `TooLarge`, `NotText`."""
        board = self._allowed("write", actor, name)
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
        wait: float = PATIENCE,
    ) -> Row:
        """Add a signed entry at the end of a board (spec 3 §6.1), or text at the end of a section, which
        needs the right to write. Never a conflict: it goes to the board as it is then. Raises
        `SectionNotFound`, `SectionAmbiguous`, `InvalidSection` and what `write` raises but `Conflict`."""
        board = self._allowed("append" if section is None else "write", actor, name)
        validation.encode_text(content)
        if section is None:
            sections.check_entry(board.name, content)
        message = _first_line(content)

        def with_more(current: FileVersion | None) -> str:
            data = self._text(board, current).encode()
            if section is None:
                return sections.closed(data)
            return sections.with_more(data, sections.find(data, board.name, section), content)

        prepared = self._ahead(board, with_more)

        def draft(current: FileVersion | None) -> Write:
            text = prepared(current)
            if section is None:
                text = sections.with_entry(text, self._signed(actor, content))
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
        wait: float = PATIENCE,
    ) -> Row:
        """Replace what stands in a section and leave everything else as it is. ``seen`` is the version in
        which the actor saw the whole board; where it read the section later, that counts. If the section has
        changed since, that is a conflict; what changed elsewhere is none. ``expected`` is the version that it
        starts from whatever it saw, -1 any. Raises what `append` does to a section, and
        `Conflict`."""
        board = self._allowed("write", actor, name)
        validation.encode_text(content)

        def last_saw(path: str) -> int:
            if expected is not None:
                return expected
            return max(seen, self._zone.last_seen_section(actor, board.name, path) if path else 0)

        def text_of(version: int) -> bytes:
            text = self._zone.version(board.name, version).content if version else self._template(board)
            return text.encode()

        def revise(current: FileVersion | None) -> Revised:
            now = self._text(board, current).encode()
            return revised(now, _version(current), board.name, section, content, last_saw, text_of)

        prepared = self._ahead(board, revise)

        def draft(current: FileVersion | None) -> Write:
            text, path, base = prepared(current)
            detail = {SECTION: path}
            return Write(actor, tool, "board", board.name, text, path[:_MESSAGE], base, detail)

        return self._zone.write(actor, board.name, draft, wait=wait)

    def history(self, actor: str, name: str, *, limit: int | None = None) -> list[Row]:
        """The versions of a board, oldest first, or the newest ``limit``."""
        return self._zone.history(self._allowed("read", actor, name).name, limit=limit)

    def version(self, actor: str, name: str, version: int) -> FileVersion:
        """An earlier version, without a note that it was read. Raises `VersionNotFound`."""
        return self._zone.version(self._allowed("read", actor, name).name, version)

    def restore(
        self,
        actor: str,
        name: str,
        version: int,
        *,
        tool: str,
        message: str,
        expected: int | None = None,
        wait: float = PATIENCE,
    ) -> Row:
        """Make an earlier version the newest again; everything stays in the history. ``expected`` is the
        version that is current as the actor knows it. Raises `VersionNotFound` and what `write` does."""
        board = self._allowed("write", actor, name)
        text = self._zone.version(board.name, version).content

        def draft(current: FileVersion | None) -> Write:
            base = _version(current) if expected is None else expected
            return Write(actor, tool, "board", board.name, text, message, base)

        return self._zone.write(actor, board.name, draft, wait=wait)

    def hold(self, actor: str, name: str, *, seconds: float = SECONDS, wait: float = PATIENCE) -> Lease:
        """Take a board's lease, or extend one's own. Raises `BoardLeased`, `BoardDenied`, `BoardNotFound`."""
        board = self._allowed("append", actor, name)
        return self._zone.leases.acquire(actor, board.name, seconds=seconds, wait=wait)

    def release(self, lease: Lease) -> bool:
        """End a lease; False if it had ended already."""
        return self._zone.leases.release(lease)

    def _allowed(self, act: Act, actor: str, name: str) -> Board:
        config = self._registry.current()
        try:
            board = Board.named(name)
        except InvalidName as error:
            known = ", ".join(each.name for each in self.boards(actor))
            raise BoardNotFound(board=error.values["given"], known=known) from error
        if board not in boards_of(config) and self._zone.current(board.name) is None:
            known = ", ".join(each.name for each in self.boards(actor))
            raise BoardNotFound(board=name, known=known)
        if not may(act, actor, board, config):
            rule = f"{'read' if act == 'read' else 'write'}_{board.kind}"
            raise BoardDenied(board=name, rule=rule, own=self.own(actor).name)
        return board

    def _ahead(
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

    def _text(self, board: Board, current: FileVersion | None) -> str:
        return current.content if current else self._template(board)

    def _template(self, board: Board) -> str:
        config = self._registry.current()
        return template(board, config, config.language)

    def _signed(self, actor: str, content: str) -> str:
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
