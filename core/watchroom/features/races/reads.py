"""Reads races from the journal, for front ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.features.budgets.rows import UsageTotal, usage_of
from watchroom.features.races.rows import (
    BEGIN_RACE,
    CHECK_RACE,
    END_RACE,
    KEEP_RACE,
    PICK_RACE,
    Entrant,
    EntryEnd,
    FinishState,
    Kept,
    RaceCheck,
    read_check,
    read_entrant,
    read_finish,
    read_kept,
)
from watchroom.features.trees.rows import TREE
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.kernel.journal.topics import steps_of
from watchroom.kernel.rules.details import get_text, session_status
from watchroom.model import Row, SessionStatus

RunState: TypeAlias = FinishState | Literal["running", "interrupted"]
"""The state of an agent of a race.

``interrupted``: the command that ran the race was killed.
"""
_SESSION: Final = "session"
_FOLDER: Final = "cwd"
_WAITING: Final[SessionStatus] = "waiting_for_human_input"
_PAGE: Final = 1000


class RaceEntry(NamedTuple):
    """An agent of a race.

    - ``tree``: the id of its tree.
    - ``begun``: the row in which it entered the race.
    - ``ended``: the number of the row that records its end; 0 if it has not ended.
    - ``finish``, ``check``, ``kept``: None if there is none.
    """

    tree: str
    entrant: Entrant
    begun: Row
    state: RunState
    ended: int = 0
    finish: EntryEnd | None = None
    check: RaceCheck | None = None
    kept: Kept | None = None
    is_picked: bool = False


class Race(NamedTuple):
    """A race. ``entries``: its agents by number."""

    name: str
    prompt: str
    entries: tuple[RaceEntry, ...]

    @property
    def picked(self) -> RaceEntry | None:
        """The agent whose work a person picked, None if nobody has."""
        return next((each for each in self.entries if each.is_picked), None)

    def find(self, number: int) -> RaceEntry | None:
        """Return the agent with this number, None if there is none."""
        return next((each for each in self.entries if each.entrant.number == number), None)


class EntryUsage(NamedTuple):
    """The usage of an agent of a race. ``agents``: the agents of the sessions in its tree."""

    agents: tuple[str, ...]
    total: UsageTotal


class RaceReader:
    """Reads the races in ``journal``. Methods raise `JournalError`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def list_names(self) -> list[str]:
        """Return the names of all races, the newest first."""
        return list(dict.fromkeys(read_entrant(row).race for row in self._rows(BEGIN_RACE)))

    def read(self, name: str) -> Race | None:
        """Return the race ``name``, None if there is none."""
        begun = [row for row in self._rows(BEGIN_RACE) if read_entrant(row).race == name]
        if not begun:
            return None
        newest: dict[tuple[str, str], Row] = {}
        for tool in (END_RACE, CHECK_RACE, KEEP_RACE, PICK_RACE):
            for row in self._rows(tool, begun[-1].seq):
                newest.setdefault((tool, row.path), row)
        is_running = self._journal.is_claimed(claim_key(name))
        entries = [_read_entry(row, newest, is_running=is_running) for row in begun]
        prompt = self._journal.content(begun[-1].seq) or ""
        return Race(name, prompt, tuple(sorted(entries, key=lambda each: each.entrant.number)))

    def read_usage(self, entry: RaceEntry) -> EntryUsage:
        """Return the usage of the sessions that began in the entry's tree before its end."""
        total, agents = UsageTotal(), dict[str, None]()
        for head in self._journal.heads(_SESSION):
            if not self._is_of(head, entry):
                continue
            agent = head.path.partition("/")[0]
            agents[agent] = None
            for row in self._journal.topic(steps_of(agent)):
                record = usage_of(row) if row.path == head.path else None
                total = total if record is None else total.plus(record.usage)
        return EntryUsage(tuple(agents), total)

    def is_waiting(self, entry: RaceEntry) -> bool:
        """Return whether an agent in the entry's tree waits for a person."""
        waiting = (each for each in self._journal.heads(_SESSION) if session_status(each) == _WAITING)
        return any(self._is_of(each, entry) for each in waiting)

    def _is_of(self, head: Row, entry: RaceEntry) -> bool:
        """Return whether the session with the newest step ``head`` began in the entry's tree, before its
        end."""
        if head.seq < entry.begun.seq:
            return False
        first = self._journal.version(_SESSION, head.path, 1)
        place = get_text(first.detail, _FOLDER) if first is not None else ""
        if first is None or not place:
            return False
        is_meanwhile = first.seq > entry.begun.seq and (not entry.ended or first.seq < entry.ended)
        folder = os.path.realpath(entry.entrant.folder)
        return is_meanwhile and f"{os.path.realpath(place)}/".startswith(f"{folder}/")

    def _rows(self, tool: str, after: int = 0) -> Iterator[Row]:
        """Yield the notes of people with ``tool``, the newest first."""
        only = RowFilter(zone=TREE, tool=tool, outcome="ok", after=after)
        before = self._journal.last_seq() + 1
        while page := self._journal.rows_before(before, limit=_PAGE, only=only):
            yield from (row for row in page if row.kind == "human" and row.version is None)
            before = page[-1].seq


def claim_key(name: str) -> str:
    """Return the key that a command claims while it runs the race ``name``."""
    return f"race:{name}"


def _read_entry(begun: Row, newest: dict[tuple[str, str], Row], *, is_running: bool) -> RaceEntry:
    tree = begun.path
    ended, checked, kept = (newest.get((tool, tree)) for tool in (END_RACE, CHECK_RACE, KEEP_RACE))
    finish = read_finish(ended) if ended is not None else None
    state: RunState = finish.state if finish is not None else "running" if is_running else "interrupted"
    return RaceEntry(
        tree,
        read_entrant(begun),
        begun,
        state,
        ended.seq if ended is not None else 0,
        finish,
        read_check(checked) if checked is not None else None,
        read_kept(kept) if kept is not None else None,
        (PICK_RACE, tree) in newest,
    )
