"""Enrols people, signs their decisions, and decides which rows count.

A person is a path. Its versions hold the role, keys and limits; a deletion revokes the enrolment. Each
version is itself a decision of an owner. Versions that do not count change nothing.
"""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import (
    ConfigInvalid,
    JournalDamaged,
    MayNotDecide,
    PersonRefused,
    SignatureRequired,
    VersionConflict,
)
from watchroom.features.config.registry import CONFIG_HEAD, SETTINGS_HEAD
from watchroom.features.config.rows import Config, dump_settings, find_unsigned
from watchroom.features.config.store import Store
from watchroom.features.people.decisions import (
    NAMESPACE,
    apply_person_row,
    describe_decision,
    find_flaw,
    read_id,
    sign_draft,
    statement_id,
    takes_effect,
)
from watchroom.features.people.rows import ID_ZONE, ZONE, People, Person
from watchroom.features.people.rules import (
    ADD_PERSON,
    DECISION_TOOLS,
    EFFECT_RULES,
    ID_PATH,
    REVOKE_PERSON,
    SIGN_SETTINGS,
    effect_of,
)
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.append import row_of
from watchroom.kernel.rules.row_leaf import has_leaf
from watchroom.model import (
    HUMAN_PREFIX,
    IDENTIFY,
    PEOPLE_FORGOTTEN,
    PEOPLE_LOST,
    SYSTEM,
    Draft,
    Json,
    Note,
    Row,
    Write,
    Zone,
)

if TYPE_CHECKING:
    from watchroom.platform.signing import Signer

LOST_PLACE: Final[tuple[Zone, str]] = ("workspace", "people")
"""The zone and path of rows that report lost enrolments."""
_MAX_PLACES: Final = 256
"""Maximum number of places whose statements are cached."""
_MAX_IDS: Final = 1_000
"""Maximum number of versions that are searched for the workspace's id."""
_PAGE: Final = 20
"""Rows read at a time while searching for the newest row with a leaf."""
SINCE: Final = "since"
"""The field of a row that revokes a person, with the row after which their decisions are disputed."""


class JournalEvidence:
    """The `watchroom.features.people.decisions.Evidence` in ``journal``. Thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = Lock()
        self._statements: dict[tuple[str, str, str, str, bool], tuple[int, dict[str, int]]] = {}
        """The last row that was searched, and the first row of each statement, by place."""

    def row(self, seq: int) -> Row | None:
        """Return row ``seq``, None if there is none. Raise `JournalError`."""
        return self._journal.row(seq)

    def content(self, seq: int) -> str | None:
        """Return the content of row ``seq``, None if it has none or the content is damaged. Raise
        `JournalError`."""
        try:
            return self._journal.content(seq)
        except JournalDamaged:
            # Damaged content has no effect; `verify` reports it.
            return None

    def is_repeated(self, row: Row) -> bool:
        """Whether an earlier row at the same zone and path has the same actor, tool and statement as ``row``.
        Raise `JournalError`."""
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
        """Yield the rows after ``after`` that could repeat the statement of ``row``."""
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
    """The enrolled people in the workspace of ``journal``, and the check of which rows count. Thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.evidence = JournalEvidence(journal)
        self._lock = Lock()
        self._has_lost_people: Callable[[], bool] = self.is_recorded_as_lost
        self._is_lost = False
        self._read_until = -1
        self._known: tuple[tuple[int, ...], list[tuple[int, People]]] = ((), [(0, People())])
        """The newest row of each person, and the enrolled people after each row that changed them. The
        workspace's id is only read once somebody is enrolled."""

    def current(self) -> People:
        """Return the currently enrolled people. Raise `JournalError`."""
        return self._eras()[-1][1]._replace(is_lost=self._is_lost)

    def before(self, seq: int) -> People:
        """Return the people who were enrolled before row ``seq``. Raise `JournalError`."""
        eras = self._eras()
        found = next((people for since, people in reversed(eras) if since < seq), eras[0][1])
        return found._replace(is_lost=self._is_lost)

    def check_lost_with(self, has_lost_people: Callable[[], bool]) -> None:
        """Replace the check for deleted enrolments. The default is `is_recorded_as_lost`.

        ``has_lost_people`` is called whenever the journal has new rows. No decision counts while it returns
        True.
        """
        self._has_lost_people = has_lost_people
        self._read_until = -1

    def is_recorded_as_lost(self) -> bool:
        """Whether a row reports that enrolments were deleted. Raise `JournalError`."""
        keys = [(*LOST_PLACE, SYSTEM, tool) for tool in (PEOPLE_LOST, PEOPLE_FORGOTTEN)]
        lost, forgotten = self._journal.last_notes(keys)
        return lost is not None and (forgotten is None or forgotten.seq < lost.seq)

    def find_founding(self) -> Row | None:
        """Return the row that closed the workspace, None if it is open. Raise `JournalError`."""
        founding = 0
        for since, people in self._eras():
            founding = (founding or since) if people.persons else 0
        return self._journal.row(founding) if founding else None

    def find_flaw(self, row: Row) -> str:
        """Return the rule that prevents ``row`` from changing protected state; empty if it can. Raise
        `JournalError`."""
        if effect_of(row) is None:
            return ""
        return find_flaw(row, self.before(row.seq), self.evidence)

    def find_flaw_now(self, row: Row) -> str:
        """Return the rule that prevents ``row`` from having an effect now, because its person may have been
        revoked since; empty if it has. Raise `JournalError`."""
        return find_flaw(row, self.current(), self.evidence)

    def key_terms(self, fingerprint: str) -> list[tuple[int, str]]:
        """Return the successive holders of the key with ``fingerprint``; empty if nobody held it. Raise
        `JournalError`.

        Each item has the row after which the person held the key, and the person's name.
        """
        return [(since, people.find_holder(fingerprint)) for since, people in self._eras()]

    def counts(self, row: Row) -> bool:
        """Whether ``row`` counts: its effect on protected state is valid, or it has no such effect. Raise
        `JournalError`."""
        return takes_effect(row, self.find_flaw(row))

    def find_dispute(self, row: Row) -> Row | None:
        """Return the row that disputes the decision ``row``, None if there is none.

        Such a row revokes the person as of an earlier row. Raise `JournalError`.
        """
        journal, name = self._journal, row.actor.removeprefix(HUMAN_PREFIX)
        for each in journal.history(ZONE, name) if name != row.actor else ():
            since = each.detail.get(SINCE)
            if each.deleted and isinstance(since, int) and since < row.seq < each.seq:
                return None if self.find_flaw(each) else each
        return None

    def _eras(self) -> list[tuple[int, People]]:
        """Return the enrolled people after each row that changed them, oldest first."""
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


class PeopleRegistry(PeopleReader):
    """The people of the workspace of ``store``. Thread-safe."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.journal)
        self._store = store
        self._on_closed: Callable[[Row], None] = lambda row: None

    def pin_with(self, on_closed: Callable[[Row], None]) -> None:
        """Call ``on_closed`` with the row if this process closes the workspace."""
        self._on_closed = on_closed

    def add(self, actor: str, person: Person, *, expected: int | None = None) -> Row:
        """Enrol ``person``, or change the enrolment. The first person must be an owner and closes the
        workspace.

        - ``actor``: the person who decides.
        - ``expected``: the version to replace, default the newest.

        Return the row. Raise `PersonRefused`, `VersionConflict`, and the errors of signing.
        """
        self._check(person.name, person)
        is_first = not self.current().is_closed
        if is_first:
            self.identify(actor)
        row = self._write(actor, ADD_PERSON, person.name, person.dump(), expected)
        if is_first:
            self._on_closed(row)
        return row

    def revoke(self, actor: str, name: str, *, since: int | None = None) -> Row:
        """Revoke the enrolment of a person. The workspace is open again if nobody is left.

        - ``actor``: the person who decides.
        - ``name``: the person who is revoked.
        - ``since``: their decisions after this row are disputed, default none.

        Return the row. Raise the errors of `add`.
        """
        self._check(name, None)
        detail: dict[str, Json] = {} if since is None else {SINCE: since}
        return self._write(actor, REVOKE_PERSON, name, None, None, detail)

    def identify(self, actor: str) -> str:
        """Return the id of the workspace. If it has none, write a new one as ``actor``. Raise
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


class DecisionSigning:
    """Signs a person's decisions in this process before they are appended to the journal. Thread-safe.

    - ``store``: its commits pass every draft through `sign`.
    - ``people``: the enrolled people. Nothing is signed in an open workspace, except enrolments.
    """

    def __init__(self, store: Store, people: PeopleRegistry) -> None:
        self._store = store
        self._people = people
        self.signer: Signer | None = None
        self._checkpoint: Callable[[], str] = lambda: ""
        store.commits.sign_with(self.sign)

    def anchor_with(self, checkpoint: Callable[[], str]) -> None:
        """Add the result of ``checkpoint``, the body of the newest seal, to signed statements."""
        self._checkpoint = checkpoint

    def needs_key(self, tool: str) -> bool:
        """Whether a call of ``tool`` must be signed and no key is unlocked. Raise `JournalError`."""
        return self.signer is None and tool in DECISION_TOOLS and self._people.current().is_closed

    def close(self) -> None:
        """Lock the unlocked key, if there is one."""
        if self.signer is not None:
            self.signer.lock()
            self.signer = None

    def sign(self, draft: Draft) -> Draft:
        """Return ``draft`` with a signature. An optional signature is only added if a key is unlocked.

        Raise:

        - `SignatureRequired`: the draft must be signed and no key is unlocked.
        - `MayNotDecide`: the signature would not count.
        - The errors of the signer.
        """
        if not draft.actor.startswith(HUMAN_PREFIX) or (isinstance(draft, Note) and draft.outcome != "ok"):
            return draft
        effect = effect_of(row_of(draft, 0, 0))
        if effect is None or not EFFECT_RULES[effect].is_signed:
            return draft
        people = self._people.current()
        if not people.is_closed and effect != "person":
            return draft
        is_required = EFFECT_RULES[effect].is_reported
        if self.signer is None:
            if not is_required:
                return draft
            raise SignatureRequired(tool=draft.tool)
        journal = self._store.journal
        time, seq = journal.now(), journal.last_seq() + 1
        evidence = _DraftEvidence(self._people.evidence, seq, draft.content)
        newest = _find_newest(journal, seq)
        statement = describe_decision(
            draft, people, self.signer.key, time, evidence, newest, self._checkpoint()
        )
        signed = sign_draft(draft, statement, self.signer.sign(statement.encode(), NAMESPACE))
        flaw = find_flaw(row_of(signed, seq, time), people, evidence)
        if flaw and is_required:
            raise MayNotDecide(person=draft.actor, tool=draft.tool, rule=flaw)
        return signed


class _DraftEvidence:
    """The rows of the journal, and the ``content`` of a draft that will become row ``seq``."""

    def __init__(self, evidence: JournalEvidence, seq: int, content: str | None) -> None:
        self._evidence = evidence
        self._seq = seq
        self._content = content

    def row(self, seq: int) -> Row | None:
        return self._evidence.row(seq)

    def content(self, seq: int) -> str | None:
        return self._content if seq == self._seq else self._evidence.content(seq)

    def is_repeated(self, row: Row) -> bool:
        # The statement of a draft is always new.
        return False


class SettingsState(NamedTuple):
    """The state of the signed settings.

    - ``signed``: the newest row of signed settings that counts; None if the settings of the file are in
      force.
    - ``unsigned``: the settings in which the file differs.
    """

    signed: Row | None
    unsigned: tuple[str, ...]


class SignedSettings:
    """The settings of ``store``, which owners sign in a closed workspace. Thread-safe.

    ``people`` decides which signatures count.
    """

    def __init__(self, store: Store, people: PeopleRegistry) -> None:
        self._store = store
        self._people = people
        store.registry.check_settings_with(people.find_flaw)

    def state(self) -> SettingsState:
        """Return the state of the settings. Raise `JournalError`."""
        _, settings = self._store.registry.settings()
        if settings is None:
            return SettingsState(None, ())
        versions = reversed(self._store.journal.history(*SETTINGS_HEAD))
        signed = next((row for row in versions if not self._people.find_flaw(row)), None)
        return SettingsState(signed, find_unsigned(self._store.registry.written(), settings))

    def sign(self, call: CallContext) -> Row | None:
        """Sign the settings of the config file as the caller. In an open workspace, delete the signed
        settings, so that the settings of the file are in force.

        Return the row; None if nothing changes. Raise `VersionConflict`, and the errors of signing.
        """
        call = call.with_tool(SIGN_SETTINGS)
        version, settings = self._store.registry.settings()
        written = self._store.registry.written()
        if not self._people.current().is_closed:
            return None if settings is None else self._write(call, None, version)
        if settings is not None and not find_unsigned(written, settings):
            return None
        return self._write(call, dump_settings(written), version)

    def change(
        self, call: CallContext, change: Callable[[Config], Config], detail: dict[str, Json]
    ) -> Row | None:
        """Change the settings in force. Retry if another call changes them at the same time.

        - ``change``: takes the current config and returns the new config.
        - ``detail``: the detail of the row.

        Return the row; None if nothing changes. Raise `ConfigInvalid`, and the errors of ``change`` and of
        signing.
        """
        while True:
            version, settings = self._store.registry.settings()
            try:
                if settings is None:
                    return self._store.registry.change(
                        change,
                        lambda text, expected: self._append(
                            call.write(*CONFIG_HEAD, text, expected=expected, detail=detail)
                        ),
                    )
                changed = change(self._store.registry.current())
                if not find_unsigned(changed, settings):
                    return None
                return self._write(call, dump_settings(changed), version, detail)
            except VersionConflict:
                continue

    def _write(
        self, call: CallContext, text: str | None, version: int, detail: dict[str, Json] | None = None
    ) -> Row:
        return self._append(call.write(*SETTINGS_HEAD, text, expected=version, detail=detail))

    def _append(self, draft: Write) -> Row:
        row, head = self._store.write(draft)
        if row.outcome == "conflict":
            raise VersionConflict(row, head, None, draft.content)
        if row.version is None:
            raise ConfigInvalid(problem=row.error)
        return row


def find_id(journal: Journal) -> str:
    """Return the id of the workspace of ``journal``; empty if it has none. The first version with a valid id
    counts. Raise `JournalError`."""
    evidence = JournalEvidence(journal)
    found = (read_id(row, evidence) for row in journal.history(ID_ZONE, ID_PATH, limit=_MAX_IDS))
    return next((each for each in found if each), "")


def id_draft(journal: Journal, actor: str, detail: Mapping[str, Json] | None = None) -> Write:
    """Return a draft by ``actor`` with a new random id for the workspace of ``journal``, and with ``detail``.
    Raise `JournalError`."""
    head = journal.head(ID_ZONE, ID_PATH)
    expected = (head.version or 0) if head is not None else 0
    return Write(actor, IDENTIFY, ID_ZONE, ID_PATH, secrets.token_hex(16), expected=expected, detail=detail)


def _find_newest(journal: Journal, before: int) -> Row | None:
    """Return the newest row with a leaf before row ``before``, None if there is none."""
    while rows := journal.rows_before(before, limit=_PAGE):
        found = next((row for row in rows if has_leaf(row)), None)
        if found is not None:
            return found
        before = rows[-1].seq
    return None


def _read_eras(journal: Journal, evidence: JournalEvidence) -> Iterator[tuple[int, People]]:
    """Yield the enrolled people after each row that changed them, oldest first."""
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
