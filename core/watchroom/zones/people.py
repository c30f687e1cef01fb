"""Who is enrolled in the workspace, and whether a decision counts.

A person is a path, whose versions say the role, the keys and the limits; a deletion revokes. Each such row is
itself a decision, of an owner's: those that do not count change nobody.
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
from watchroom.rules.decisions import apply_person_row, find_flaw, is_decision
from watchroom.rules.people import ADD_PERSON, ID_PATH, ID_ZONE, REVOKE_PERSON, ZONE, People, Person
from watchroom.zones.store import Store

SINCE: Final = "since"
"""The name in the detail of a row that revokes somebody: after which row their decisions are disputed."""


class PeopleZone:
    """The people of a workspace, in ``store``. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._known: tuple[tuple[int, ...], list[tuple[int, People]]] = ((), [(0, People())])
        """The heads by which they are known, and who there was from which row on. As long as nobody is
        enrolled the id of the workspace is not asked for."""

    def current(self) -> People:
        """Who is enrolled now. Raises `JournalError`."""
        return self._eras()[-1][1]

    def before(self, seq: int) -> People:
        """Who was enrolled when row ``seq`` was made. Raises `JournalError`."""
        return next(people for since, people in reversed(self._eras()) if since < seq)

    def find_flaw(self, row: Row) -> str:
        """Why the decision ``row`` does not count: the name of a rule, empty where it counts. Raises
        `JournalError`."""
        people = self.before(row.seq)
        content = _find_text(self._store.journal, row) if row.zone == ZONE else None
        return find_flaw(row, people, self._store.journal.row, content)

    def key_terms(self, fingerprint: str) -> list[tuple[int, str]]:
        """Who had the key with that ``fingerprint``: from after which row on, and the name, empty where
        nobody did. Raises `JournalError`."""
        return [(since, people.find_holder(fingerprint)) for since, people in self._eras()]

    def counts(self, row: Row) -> bool:
        """Whether ``row`` is none of the decisions that count only with a signature, or is one that counts.
        Raises `JournalError`."""
        return not is_decision(row) or not self.find_flaw(row)

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

    def find_dispute(self, row: Row) -> Row | None:
        """The row that disputes the decision ``row``: it revokes who made it as of a row before. None where
        none does. Raises `JournalError`."""
        journal, name = self._store.journal, row.actor.removeprefix(HUMAN_PREFIX)
        for each in journal.history(ZONE, name) if name != row.actor else ():
            since = each.detail.get(SINCE)
            if each.deleted and isinstance(since, int) and since < row.seq < each.seq:
                return None if self.find_flaw(each) else each
        return None

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

    def _eras(self) -> list[tuple[int, People]]:
        journal = self._store.journal
        heads = tuple(head.seq for head in journal.heads(ZONE))
        with self._lock:
            known, eras = self._known
            if known == heads:
                return eras
        eras = list(_read_eras(journal))
        with self._lock:
            self._known = heads, eras
        return eras


def find_id(journal: Journal) -> str:
    """The id of the workspace of ``journal``, empty where it has none. Raises `JournalError`."""
    row = journal.version(ID_ZONE, ID_PATH, 1)
    return "" if row is None else _find_text(journal, row) or ""


def _find_text(journal: Journal, row: Row) -> str | None:
    """Return the text of ``row``, None if it has none or it cannot be read. Raise `JournalError`."""
    try:
        return journal.content(row.seq)
    except JournalDamaged:
        return None


def _read_eras(journal: Journal) -> Iterator[tuple[int, People]]:
    people = People(find_id(journal))
    yield 0, people
    histories = [journal.history(ZONE, head.path) for head in journal.heads(ZONE)]
    for row in heapq.merge(*histories, key=attrgetter("seq")):
        # A row that cannot be read enrols nobody and revokes nobody; `verify` names it.
        after = apply_person_row(people, row, _find_text(journal, row), journal.row)
        if after != people:
            people = after
            yield row.seq, people
