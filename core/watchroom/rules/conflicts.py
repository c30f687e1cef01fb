"""Conflicts: two texts of one file of which only one can stand, until somebody settles it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from watchroom.model import CHECKOUT, HUMAN_PREFIX, OUTSIDE, SETTLING_NOTES, SHARED, Row, Zone
from watchroom.rules.details import get_int, get_ints

ConflictKind: TypeAlias = Literal["write", "outside"]


EDIT_UNDONE: Final = "edit_undone"
"""The error of the row that records that an external edit is not on disk any more: the file is again as the
version says that the edit replaced."""
NOT_A_FILE: Final = "not_a_file"
"""The error of an external edit that put a link, a folder or a pipe in the place of a file."""


class ConflictView(NamedTuple):
    """An open conflict. Its texts are the contents of its rows.

    ``row`` is the newest refused write of its agent, or the newest note of an edit made by hand; ``since``
    the row that opened the conflict. ``against`` is the version that is current now, None where there is
    none: the file may have been written only after ``row`` came. ``rounds`` grows by one with each version
    that the file gets while the conflict is open; ``times`` counts the rows.
    """

    row: Row
    kind: ConflictKind
    against: Row | None
    since: Row
    rounds: int = 1
    times: int = 1

    @property
    def id(self) -> int:
        """The number that a person's resolution or dismissal names."""
        return self.row.seq

    @property
    def zone(self) -> Zone:
        return self.row.zone

    @property
    def path(self) -> str:
        return self.row.path

    @property
    def base(self) -> int:
        """The version that the refused text started from, 0 if from none."""
        return self.row.base or 0

    @property
    def actor(self) -> str:
        return self.row.actor


def is_conflict(row: Row) -> bool:
    """Whether ``row`` opens a conflict: a refused write to what several share, or an edit made by hand. A
    person whose write is refused sees it at once, so that opens none."""
    return row.outcome == "conflict" and row.zone in SHARED and not row.actor.startswith(HUMAN_PREFIX)


def checkout_of(edit: Row) -> str:
    """In which of a workspace's checkouts ``edit`` was made by hand, empty where there is one only."""
    checkout = edit.detail.get(CHECKOUT)
    return checkout if isinstance(checkout, str) else ""


def writer_of(row: Row) -> str:
    """Who wrote ``row``: an agent, or whoever edits by hand in one of the checkouts, which may each hold
    another text."""
    checkout = checkout_of(row) if row.actor == OUTSIDE else ""
    return f"{OUTSIDE}/{checkout}" if checkout else row.actor


def named_conflicts(settlement: Row) -> list[int]:
    """The numbers of the conflicts that a person's row ``settlement`` resolves, dismisses or reverts."""
    detail = settlement.detail
    if isinstance(detail.get("resolves"), list):
        return get_ints(detail, "resolves")
    number = get_int(detail, "conflict")
    return [] if number is None else [number]


def is_settled_by(conflict: Row, version: Row) -> bool:
    """Whether ``version``, a later one of the path that names no conflict, settles ``conflict`` all the same:
    its own agent's next one does, and a person's. On a board only a text that replaces the whole board does,
    or the very section that was refused: an entry or another section leaves the conflict as it was, and so
    does what a person writes, who may not know of it."""
    is_own = version.actor == conflict.actor and conflict.actor != OUTSIDE
    if version.zone != "board":
        return is_own or version.actor.startswith(HUMAN_PREFIX)
    if not is_own or version.tool == "whiteboard_append":
        return False
    section = version.detail.get("section")
    return section is None or section == conflict.detail.get("section")


def is_same_text(refused: Row, version: Row) -> bool:
    """Whether ``version`` has the very text that was ``refused``: then nobody has to choose between the
    two."""
    return refused.sha256 is not None and refused.sha256 == version.sha256


_Place: TypeAlias = tuple[Zone, str]


class Refusal(NamedTuple):
    """A refused write that waits to be settled."""

    row: Row
    current: int
    """The version that it met, 0 where there was none."""


class ConflictTracker:
    """The open conflicts of the shared files and boards, at most one for each agent and file, and for each
    checkout in which a file is edited by hand.

    A refused write of an agent opens one, as does an edit made by hand. It closes by the agent's own next
    version of the file, by a person's version, dismissal or revert, or by anybody's version with the very
    text that was refused; that of an external edit also when the edit is undone. Nothing else closes it. A
    refused text that is current already opens none. A person's version that names what it resolves closes
    only that; what the same agent wrote after the named row stays open, for the person has not seen it. A
    person whose write is refused sees it at once, so that opens nothing.
    """

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """What is made anew, and how it begins then, where the state is kept."""

    def __init__(self) -> None:
        # In the order of their newest rows, so that the newest first needs no sorting.
        self._open: dict[tuple[_Place, str], ConflictView] = {}
        self._refusals: dict[_Place, dict[str, list[Refusal]]] = {}
        """By place and writer, oldest first."""
        self._heads: dict[_Place, Row] = {}
        self._current: tuple[ConflictView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Take in ``row``, the next one of something that several share."""
        place = _file_key(row)
        if row.version is not None:
            self._heads[place] = row
        head = self._heads.get(place)
        if is_conflict(row):
            self._refuse(row, head)
        elif row.actor == OUTSIDE and row.error == EDIT_UNDONE:
            self._undo(row, head)
        elif row.outcome == "ok" and place in self._refusals:
            if row.version is not None:
                self._move_on(row)
            elif row.tool in SETTLING_NOTES:
                self._settle(place, named_conflicts(row), head)

    def is_open(self, conflict: Row) -> bool:
        """Whether ``conflict``, a row that was taken in, waits to be settled."""
        refusals = self._refusals.get(_file_key(conflict), {}).get(writer_of(conflict), [])
        return any(each.row.seq == conflict.seq for each in refusals)

    def current(self) -> tuple[ConflictView, ...]:
        """All open conflicts, newest first; the same object as before if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(reversed(self._open.values()))
        return self._current

    def _refuse(self, row: Row, head: Row | None) -> None:
        place, writer = _file_key(row), writer_of(row)
        if head is not None and is_same_text(row, head):
            if (place, writer) in self._open:
                self._close(place, [writer])
            return
        refusals = self._refusals.setdefault(place, {}).setdefault(writer, [])
        refusals.append(Refusal(row, _version(head)))
        self._open.pop((place, writer), None)
        self._open[place, writer] = _conflict(refusals, head)
        self._changed = True

    def _undo(self, row: Row, head: Row | None) -> None:
        """Close the edits of the version that ``row`` says is on disk again. What a newer version replaced
        on disk was not undone."""
        place, writer = _file_key(row), writer_of(row)
        refusals = self._refusals.get(place, {}).get(writer, [])
        left = [each for each in refusals if (each.row.base or 0) != (row.base or 0)]
        if refusals and not left:
            self._close(place, [writer])
        elif len(left) < len(refusals):
            self._refusals[place][writer] = left
            self._open[place, writer] = _conflict(left, head)
            self._changed = True

    def _move_on(self, row: Row) -> None:
        """A new version: it closes some and is one more round of the others."""
        place = _file_key(row)
        waiting = self._refusals[place]
        if "resolves" in row.detail:
            self._settle(place, named_conflicts(row), row)
        else:
            self._close(place, [who for who, each in waiting.items() if is_settled_by(each[-1].row, row)])
        of_file = self._refusals.get(place, {}).values()
        alike = [each.row.seq for refusals in of_file for each in refusals if is_same_text(each.row, row)]
        if alike:
            self._settle(place, alike, row)
        for writer, refusals in self._refusals.get(place, {}).items():
            self._open[place, writer] = _conflict(refusals, row)
            self._changed = True

    def _settle(self, place: _Place, named: Collection[int], head: Row | None) -> None:
        """Close what is named, each with what its writer wrote before."""
        for writer, refusals in list(self._refusals[place].items()):
            settled = max((n for n, each in enumerate(refusals, 1) if each.row.seq in named), default=0)
            if settled == len(refusals):
                self._close(place, [writer])
            elif settled:
                del refusals[:settled]
                self._open[place, writer] = _conflict(refusals, head)
                self._changed = True

    def _close(self, place: _Place, writers: Iterable[str]) -> None:
        for writer in writers:
            del self._open[place, writer]
            del self._refusals[place][writer]
            self._changed = True
        if not self._refusals[place]:
            del self._refusals[place]


def _file_key(row: Row) -> _Place:
    return row.zone, row.path


def _conflict(refusals: list[Refusal], head: Row | None) -> ConflictView:
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
