"""Who is enrolled in the workspace, and whether a row may change protected state.

A person is a path whose versions have the role, keys and limits; a deletion revokes. Each such row is a
decision of an owner itself. Rows that do not count change nobody.
"""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from threading import Lock
from typing import Final

from watchroom.errors import JournalDamaged, VersionConflict
from watchroom.journal import Journal
from watchroom.model import (
    HUMAN_PREFIX,
    IDENTIFY,
    PEOPLE_FORGOTTEN,
    PEOPLE_LOST,
    SYSTEM,
    Json,
    Row,
    Write,
    Zone,
)
from watchroom.rules.decision_errors import PersonRefused
from watchroom.rules.decisions import apply_person_row, find_flaw, read_id, statement_id, takes_effect
from watchroom.rules.effects import ADD_PERSON, ID_PATH, REVOKE_PERSON, effect_of
from watchroom.rules.people import ID_ZONE, ZONE, People, Person
from watchroom.zones.store import Store

LOST_PLACE: Final[tuple[Zone, str]] = ("workspace", "people")
"""Where a row says that rows are gone by which people were enrolled."""
_MAX_PLACES: Final = 256
_MAX_IDS: Final = 1_000
SINCE: Final = "since"
"""The name in the detail of a row that revokes somebody: after which row their decisions are disputed."""


class JournalEvidence:
    """The rows of ``journal``, as `watchroom.rules.decisions.find_flaw` asks for them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = Lock()
        self._statements: dict[tuple[str, str, str, str, bool], tuple[int, dict[str, int]]] = {}
        """By place, up to which row it was looked through, and the first row of each statement."""

    def row(self, seq: int) -> Row | None:
        """Return the row with that number, None where there is none. Raise `JournalError`."""
        return self._journal.row(seq)

    def content(self, seq: int) -> str | None:
        """Return the content of the row with that number, None where it has none or is damaged. Raise
        `JournalError`."""
        try:
            return self._journal.content(seq)
        except JournalDamaged:
            # A damaged content decides nothing; `verify` names it.
            return None

    def is_repeated(self, row: Row) -> bool:
        """Whether an earlier row has the zone, path, actor, tool and statement of ``row``. Raise
        `JournalError`."""
        place = (row.zone, row.path, row.actor, row.tool, row.version is None)
        with self._lock:
            until, first = self._statements.pop(place, (0, {}))
        if until < row.seq:
            for each in self._rows_at(row, until):
                statement = statement_id(each)
                if statement:
                    first[statement] = min(each.seq, first.get(statement, each.seq))
            until = row.seq
        with self._lock:
            self._statements[place] = until, first
            if len(self._statements) > _MAX_PLACES:
                del self._statements[next(iter(self._statements))]
        return first.get(statement_id(row), row.seq) < row.seq

    def _rows_at(self, row: Row, after: int) -> Iterator[Row]:
        """Yield the rows after ``after`` that could have the statement of ``row``."""
        if row.version is None:
            yield from self._journal.notes(
                row.zone, row.path, row.actor, row.tool, after=after, until=row.seq
            )
            return
        yield from (each for each in self._journal.history(row.zone, row.path) if after < each.seq <= row.seq)
        before = row.seq
        while refused := self._journal.refused(row.zone, row.path, after=after, before=before):
            yield from refused
            before = refused[-1].seq


class PeopleReader:
    """Who is enrolled in the workspace of ``journal``, and which rows count. May be used from any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.evidence = JournalEvidence(journal)
        self._lock = Lock()
        self._has_lost_people: Callable[[], bool] = self.is_recorded_as_lost
        self._is_lost = False
        self._read_until = -1
        self._known: tuple[tuple[int, ...], list[tuple[int, People]]] = ((), [(0, People())])
        """The heads of all persons, and who was enrolled from which row on. As long as nobody is enrolled the
        id of the workspace is not asked for."""

    def current(self) -> People:
        """Return who is enrolled now. Raise `JournalError`."""
        return self._eras()[-1][1]._replace(is_lost=self._is_lost)

    def before(self, seq: int) -> People:
        """Return who was enrolled when row ``seq`` was made. Raise `JournalError`."""
        eras = self._eras()
        found = next((people for since, people in reversed(eras) if since < seq), eras[0][1])
        return found._replace(is_lost=self._is_lost)

    def check_lost_with(self, has_lost_people: Callable[[], bool]) -> None:
        """Ask ``has_lost_people`` whether rows that enrolled people are gone, each time that there are new
        rows. By default a row says so. While they are gone nobody's decision counts."""
        self._has_lost_people = has_lost_people
        self._read_until = -1

    def is_recorded_as_lost(self) -> bool:
        """Whether a row says that rows that enrolled people are gone. Raise `JournalError`."""
        keys = [(*LOST_PLACE, SYSTEM, tool) for tool in (PEOPLE_LOST, PEOPLE_FORGOTTEN)]
        lost, forgotten = self._journal.last_notes(keys)
        return lost is not None and (forgotten is None or forgotten.seq < lost.seq)

    def find_founding(self) -> Row | None:
        """Return the row by which the workspace was closed, None where it is open. Raise `JournalError`."""
        founding = 0
        for since, people in self._eras():
            founding = (founding or since) if people.persons else 0
        return self._journal.row(founding) if founding else None

    def find_flaw(self, row: Row) -> str:
        """Return the rule because of which ``row`` may not change protected state, empty where it may. Raise
        `JournalError`."""
        if effect_of(row) is None:
            return ""
        return find_flaw(row, self.before(row.seq), self.evidence)

    def key_terms(self, fingerprint: str) -> list[tuple[int, str]]:
        """Who had the key with that ``fingerprint``: from after which row on, and the name, empty where
        nobody did. Raises `JournalError`."""
        return [(since, people.find_holder(fingerprint)) for since, people in self._eras()]

    def counts(self, row: Row) -> bool:
        """Whether ``row`` is carried out, as far as protected state goes. Raise `JournalError`."""
        return takes_effect(row, self.find_flaw(row))

    def find_dispute(self, row: Row) -> Row | None:
        """The row that disputes the decision ``row``: it revokes who made it as of a row before. None where
        none does. Raises `JournalError`."""
        journal, name = self._journal, row.actor.removeprefix(HUMAN_PREFIX)
        for each in journal.history(ZONE, name) if name != row.actor else ():
            since = each.detail.get(SINCE)
            if each.deleted and isinstance(since, int) and since < row.seq < each.seq:
                return None if self.find_flaw(each) else each
        return None

    def _eras(self) -> list[tuple[int, People]]:
        journal = self._journal
        last = journal.last_seq()
        with self._lock:
            known, eras = self._known
            if self._read_until == last:
                return eras
        heads = tuple(head.seq for head in journal.heads(ZONE))
        is_lost = self._has_lost_people()
        if known != heads or not eras:
            eras = list(_read_eras(journal, self.evidence))
        with self._lock:
            self._known = heads, eras
            self._is_lost, self._read_until = is_lost, last
        return eras


class PeopleZone(PeopleReader):
    """The people of a workspace, in ``store``. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.journal)
        self._store = store
        self._on_closed: Callable[[Row], None] = lambda row: None

    def pin_with(self, on_closed: Callable[[Row], None]) -> None:
        """Call ``on_closed`` with the row by which this process closes the workspace."""
        self._on_closed = on_closed

    def add(self, actor: str, person: Person, *, expected: int | None = None) -> Row:
        """Enrol ``person``, or change what is known of them, as ``actor``; the first one is the owner, and
        closes the workspace. Returns the row. Raises `PersonRefused`, `VersionConflict`, and what signing
        raises."""
        self._check(person.name, person)
        is_first = not self.current().is_closed
        if is_first:
            self.identify(actor)
        row = self._write(actor, ADD_PERSON, person.name, person.dump(), expected)
        if is_first:
            self._on_closed(row)
        return row

    def revoke(self, actor: str, name: str, *, since: int | None = None) -> Row:
        """Let the person called ``name`` decide no more, as ``actor``; what they decided after row ``since``
        is disputed (default: nothing is). Where nobody is left the workspace is open again. Returns the row.
        Raises as `add` does."""
        self._check(name, None)
        detail: dict[str, Json] = {} if since is None else {SINCE: since}
        return self._write(actor, REVOKE_PERSON, name, None, None, detail)

    def identify(self, actor: str) -> str:
        """The id of the workspace, which is given one as ``actor``'s if it has none. Raises
        `JournalError`."""
        found = find_id(self._store.journal)
        if not found:
            self._store.write(id_draft(self._store.journal, actor))
            found = find_id(self._store.journal)
        with self._lock:
            if not self._known[0]:
                self._known = (), [(0, People(found))]
        return found

    def _check(self, name: str, person: Person | None) -> None:
        rule = self.current().check_change(name, person)
        if rule:
            raise PersonRefused(person=name, rule=rule)

    def _write(
        self,
        actor: str,
        tool: str,
        name: str,
        content: str | None,
        expected: int | None,
        detail: dict[str, Json] | None = None,
    ) -> Row:
        head = self._store.journal.head(ZONE, name)
        base = (head.version or 0) if expected is None and head is not None else expected or 0
        row, met = self._store.write(Write(actor, tool, ZONE, name, content, expected=base, detail=detail))
        if row.outcome == "conflict":
            raise VersionConflict(row, met, None, content or "")
        return row


def find_id(journal: Journal) -> str:
    """Return the id of the workspace of ``journal``, empty where it has none: the first version with the form
    of an id counts. Raise `JournalError`."""
    evidence = JournalEvidence(journal)
    found = (read_id(row, evidence) for row in journal.history(ID_ZONE, ID_PATH, limit=_MAX_IDS))
    return next((each for each in found if each), "")


def id_draft(journal: Journal, actor: str, detail: Mapping[str, Json] | None = None) -> Write:
    """Return the draft by which ``actor`` gives the workspace of ``journal`` a new id, with a ``detail``.
    Raise `JournalError`."""
    head = journal.head(ID_ZONE, ID_PATH)
    expected = (head.version or 0) if head is not None else 0
    return Write(actor, IDENTIFY, ID_ZONE, ID_PATH, secrets.token_hex(16), expected=expected, detail=detail)


def _read_eras(journal: Journal, evidence: JournalEvidence) -> Iterator[tuple[int, People]]:
    people = People(find_id(journal))
    yield 0, people
    histories = (
        [head] if head.version == 1 else journal.history(ZONE, head.path) for head in journal.heads(ZONE)
    )
    for row in heapq.merge(*histories, key=attrgetter("seq")):
        after = apply_person_row(people, row, evidence)
        if after != people:
            people = after
            yield row.seq, people
