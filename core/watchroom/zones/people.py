"""Who is enrolled in the workspace, and whether a row may change protected state.

A person is a path whose versions have the role, keys and limits; a deletion revokes. Each such row is a
decision of an owner itself. Rows that do not count change nobody.
"""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Iterator
from operator import attrgetter
from threading import Lock
from typing import Final

from watchroom.errors import JournalDamaged, VersionConflict
from watchroom.journal import Journal
from watchroom.model import HUMAN_PREFIX, IDENTIFY, Json, Row, Write
from watchroom.rules.decision_errors import PersonRefused
from watchroom.rules.decisions import apply_person_row, find_flaw, statement_id, takes_effect
from watchroom.rules.effects import ADD_PERSON, ID_PATH, REVOKE_PERSON, effect_of
from watchroom.rules.people import ID_ZONE, ZONE, People, Person
from watchroom.zones.store import Store

SINCE: Final = "since"
"""The name in the detail of a row that revokes somebody: after which row their decisions are disputed."""


class JournalEvidence:
    """The rows of ``journal``, as `watchroom.rules.decisions.find_flaw` asks for them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

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
        if row.version is None:
            earlier = self._journal.notes(row.zone, row.path, row.actor, row.tool, until=row.seq - 1)
        else:
            earlier = self._journal.history(row.zone, row.path)
            earlier += self._journal.refused(row.zone, row.path, before=row.seq)
        statement = statement_id(row)
        return any(each.seq < row.seq and statement_id(each) == statement for each in earlier)


class PeopleReader:
    """Who is enrolled in the workspace of ``journal``, and which rows count. May be used from any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.evidence = JournalEvidence(journal)
        self._lock = Lock()
        self._is_lost = False
        self._known: tuple[tuple[int, ...], list[tuple[int, People]]] = ((), [(0, People())])
        """The heads of all persons, and who was enrolled from which row on. As long as nobody is enrolled the
        id of the workspace is not asked for."""

    def current(self) -> People:
        """Return who is enrolled now. Raise `JournalError`."""
        return self._eras()[-1][1]._replace(is_lost=self._is_lost)

    def before(self, seq: int) -> People:
        """Return who was enrolled when row ``seq`` was made. Raise `JournalError`."""
        found = next(people for since, people in reversed(self._eras()) if since < seq)
        return found._replace(is_lost=self._is_lost)

    def mark_lost(self) -> None:
        """Count no decision of anybody from now on: rows that enrolled people are gone."""
        self._is_lost = True

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
        heads = tuple(head.seq for head in journal.heads(ZONE))
        with self._lock:
            known, eras = self._known
            if known == heads:
                return eras
        eras = list(_read_eras(journal, self.evidence))
        with self._lock:
            self._known = heads, eras
        return eras


class PeopleZone(PeopleReader):
    """The people of a workspace, in ``store``. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.journal)
        self._store = store

    def add(self, actor: str, person: Person, *, expected: int | None = None) -> Row:
        """Enrol ``person``, or change what is known of them, as ``actor``; the first one is the owner, and
        closes the workspace. Returns the row. Raises `PersonRefused`, `VersionConflict`, and what signing
        raises."""
        self._check(person.name, person)
        if not self.current().is_closed:
            self.identify(actor)
        return self._write(actor, ADD_PERSON, person.name, person.dump(), expected)

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
            draft = Write(actor, IDENTIFY, ID_ZONE, ID_PATH, secrets.token_hex(16), expected=0)
            self._store.write(draft)
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
    """The id of the workspace of ``journal``, empty where it has none. Raises `JournalError`."""
    row = journal.version(ID_ZONE, ID_PATH, 1)
    return "" if row is None else JournalEvidence(journal).content(row.seq) or ""


def _read_eras(journal: Journal, evidence: JournalEvidence) -> Iterator[tuple[int, People]]:
    people = People(find_id(journal))
    yield 0, people
    histories = [journal.history(ZONE, head.path) for head in journal.heads(ZONE)]
    for row in heapq.merge(*histories, key=attrgetter("seq")):
        after = apply_person_row(people, row, evidence)
        if after != people:
            people = after
            yield row.seq, people
