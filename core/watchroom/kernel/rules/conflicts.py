"""Rules for which rows open and close conflicts on shared files and boards. Pure.

A conflict is a text that was refused as a new version: a stale write, or an external edit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.rules.details import get_int, get_ints
from watchroom.kernel.zones import SECTIONED, SHARED
from watchroom.model import CHECKOUT, HUMAN_PREFIX, OUTSIDE, SETTLING_NOTES, Row, Zone

ConflictKind: TypeAlias = Literal["write", "outside"]


EDIT_UNDONE: Final = "edit_undone"
"""The error in the row of an undone external edit: the file again has the text of its version."""
NOT_A_FILE: Final = "not_a_file"
"""The error of an external edit that replaced a file by a link, a folder or a pipe."""


class ConflictView(NamedTuple):
    """An open conflict. Its texts are the contents of its rows.

    - ``row``: the newest refused write of its agent, or the newest external edit.
    - ``against``: the current version, which may be newer than ``row``; None if there is none.
    - ``since``: the row that opened the conflict.
    - ``rounds``: 1, and 1 more for each version that was written while the conflict was open.
    - ``times``: the number of its rows.
    """

    row: Row
    kind: ConflictKind
    against: Row | None
    since: Row
    rounds: int = 1
    times: int = 1

    @property
    def id(self) -> int:
        """The number of the conflict. People use it to resolve or dismiss the conflict."""
        return self.row.seq

    @property
    def zone(self) -> Zone:
        return self.row.zone

    @property
    def path(self) -> str:
        return self.row.path

    @property
    def base(self) -> int:
        """The version on which the refused text is based; 0 if there is none."""
        return self.row.base or 0

    @property
    def actor(self) -> str:
        return self.row.actor


def is_conflict(row: Row) -> bool:
    """Return whether ``row`` opens a conflict: a refused write or an external edit of a shared file or board.
    Refused writes of people do not, because people see them immediately."""
    return row.outcome == "conflict" and row.zone in SHARED and not row.actor.startswith(HUMAN_PREFIX)


def checkout_of(edit: Row) -> str:
    """Return the checkout of the external edit ``edit``; empty if the workspace has only one."""
    checkout = edit.detail.get(CHECKOUT)
    return checkout if isinstance(checkout, str) else ""


def writer_of(row: Row) -> str:
    """Return the writer of ``row``. The writer of an external edit is ``outside`` and the checkout, because
    each checkout can have a different text."""
    checkout = checkout_of(row) if row.actor == OUTSIDE else ""
    return f"{OUTSIDE}/{checkout}" if checkout else row.actor


def named_conflicts(settlement: Row) -> list[int]:
    """Return the numbers of the conflicts that the row ``settlement`` resolves, dismisses or reverts."""
    detail = settlement.detail
    if isinstance(detail.get("resolves"), list):
        return get_ints(detail, "resolves")
    number = get_int(detail, "conflict")
    return [] if number is None else [number]


def is_settled_by(conflict: Row, version: Row) -> bool:
    """Return whether ``version``, a later version of the path, settles ``conflict`` without naming it.

    A conflict on a shared file is settled by the next version of the same agent, and by any version of a
    person. A conflict on a board is settled only by a version of the same agent that replaces the whole board
    or the refused section. People who write a board may not know of the conflict.
    """
    is_own = version.actor == conflict.actor and conflict.actor != OUTSIDE
    if version.zone not in SECTIONED:
        return is_own or version.actor.startswith(HUMAN_PREFIX)
    if not is_own or version.tool == "whiteboard_append":
        return False
    section = version.detail.get("section")
    return section is None or section == conflict.detail.get("section")


def is_same_text(refused: Row, version: Row) -> bool:
    """Return whether ``version`` has the text of ``refused``, so that no decision is needed."""
    return refused.sha256 is not None and refused.sha256 == version.sha256


_FileKey: TypeAlias = tuple[Zone, str]


class RefusedWrite(NamedTuple):
    """A refused write that is not settled."""

    row: Row
    current: int
    """The version that was current at the refusal; 0 if there was none."""


class ConflictTracker:
    """The open conflicts of shared files and boards, at most one for each file and writer.

    A refused write of an agent and an external edit open a conflict, unless the refused text equals the
    current text. These rows close a conflict:

    - The next version of the same agent.
    - A version, dismissal or revert by a person. If a version names conflicts, it closes only these. Writes
      of the agent after the named row stay open, because the person has not seen them.
    - Any version with the refused text.
    - The end of the external edit, if it is undone on disk.
    """

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._open: dict[tuple[_FileKey, str], ConflictView] = {}
        self._refusals: dict[_FileKey, dict[str, list[RefusedWrite]]] = {}
        """The refused writes by file and writer, oldest first."""
        self._heads: dict[_FileKey, Row] = {}
        self._current: tuple[ConflictView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row``, the next row of a shared file or board."""
        key = _file_key(row)
        if row.version is not None:
            self._heads[key] = row
        head = self._heads.get(key)
        if is_conflict(row):
            self._refuse(row, head)
        elif row.actor == OUTSIDE and row.error == EDIT_UNDONE:
            self._undo(row, head)
        elif row.outcome == "ok" and key in self._refusals:
            if row.version is not None:
                self._move_on(row)
            elif row.tool in SETTLING_NOTES:
                self._settle(key, named_conflicts(row), head)

    def is_open(self, conflict: Row) -> bool:
        """Return whether the conflict that the row ``conflict`` opened is still open."""
        refusals = self._refusals.get(_file_key(conflict), {}).get(writer_of(conflict), [])
        return any(each.row.seq == conflict.seq for each in refusals)

    def current(self) -> tuple[ConflictView, ...]:
        """Return all open conflicts, newest first; the same object as before if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(sorted(self._open.values(), key=lambda each: each.id, reverse=True))
        return self._current

    def _refuse(self, row: Row, head: Row | None) -> None:
        key, writer = _file_key(row), writer_of(row)
        if head is not None and is_same_text(row, head):
            if (key, writer) in self._open:
                self._close(key, [writer])
            return
        refusals = self._refusals.setdefault(key, {}).setdefault(writer, [])
        refusals.append(RefusedWrite(row, _version(head)))
        self._open[key, writer] = _conflict(refusals, head)
        self._changed = True

    def _undo(self, row: Row, head: Row | None) -> None:
        """Close the edits of the version that is again on disk according to ``row``. Edits of other versions
        stay open, because a newer version replaced them, and nobody undid them."""
        key, writer = _file_key(row), writer_of(row)
        refusals = self._refusals.get(key, {}).get(writer, [])
        left = [each for each in refusals if (each.row.base or 0) != (row.base or 0)]
        if refusals and not left:
            self._close(key, [writer])
        elif len(left) < len(refusals):
            self._refusals[key][writer] = left
            self._open[key, writer] = _conflict(left, head)
            self._changed = True

    def _move_on(self, row: Row) -> None:
        """Apply a new version: close the conflicts that it settles, and count a round for the others."""
        key = _file_key(row)
        waiting = self._refusals[key]
        if "resolves" in row.detail:
            self._settle(key, named_conflicts(row), row)
        else:
            self._close(key, [who for who, each in waiting.items() if is_settled_by(each[-1].row, row)])
        of_file = self._refusals.get(key, {}).values()
        alike = [each.row.seq for refusals in of_file for each in refusals if is_same_text(each.row, row)]
        if alike:
            self._settle(key, alike, row)
        for writer, refusals in self._refusals.get(key, {}).items():
            self._open[key, writer] = _conflict(refusals, row)
            self._changed = True

    def _settle(self, key: _FileKey, named: Collection[int], head: Row | None) -> None:
        """Close the named conflicts, and earlier conflicts of the same writers."""
        for writer, refusals in list(self._refusals[key].items()):
            settled = max((n for n, each in enumerate(refusals, 1) if each.row.seq in named), default=0)
            if settled == len(refusals):
                self._close(key, [writer])
            elif settled:
                del refusals[:settled]
                self._open[key, writer] = _conflict(refusals, head)
                self._changed = True

    def _close(self, key: _FileKey, writers: Iterable[str]) -> None:
        for writer in writers:
            del self._open[key, writer]
            del self._refusals[key][writer]
            self._changed = True
        if not self._refusals[key]:
            del self._refusals[key]


def _file_key(row: Row) -> _FileKey:
    return row.zone, row.path


def _conflict(refusals: list[RefusedWrite], head: Row | None) -> ConflictView:
    oldest, newest = refusals[0], refusals[-1]
    return ConflictView(
        row=newest.row,
        kind="outside" if newest.row.actor == OUTSIDE else "write",
        against=head,
        since=oldest.row,
        rounds=1 + _version(head) - oldest.current,
        times=len(refusals),
    )


def _version(row: Row | None) -> int:
    return (row.version or 0) if row else 0


def as_undecided(row: Row) -> Row:
    """Return ``row`` as an external change. Used for a decision that does not count, so that it does not
    settle, resume or end anything."""
    return row._replace(actor=OUTSIDE, tool="", detail_json="")
