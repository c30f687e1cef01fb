"""Sign the decisions of the person at this process, on their way into the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from watchroom.journal import Journal
from watchroom.model import HUMAN_PREFIX, Draft, Note, Row
from watchroom.rules.append import row_of
from watchroom.rules.decision_errors import MayNotDecide, SignatureRequired
from watchroom.rules.decisions import NAMESPACE, describe_decision, find_flaw, sign_draft
from watchroom.rules.effects import DECISION_TOOLS, EFFECT_RULES, effect_of
from watchroom.rules.row_leaf import has_leaf
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store

if TYPE_CHECKING:
    from watchroom.signing import Signer


_PAGE = 20


class _DraftEvidence:
    """What the journal says, and the ``content`` of a draft that is about to become row ``seq``."""

    def __init__(self, people: PeopleZone, seq: int, content: str | None) -> None:
        self._evidence = people.evidence
        self._seq = seq
        self._content = content

    def row(self, seq: int) -> Row | None:
        return self._evidence.row(seq)

    def content(self, seq: int) -> str | None:
        return self._content if seq == self._seq else self._evidence.content(seq)

    def is_repeated(self, row: Row) -> bool:
        # Its statement was made a moment ago.
        return False


class DecisionSigning:
    """Signs with the ``signer`` that a person has unlocked what would not count unsigned in the closed
    workspace of ``store``. ``people`` says who is enrolled. May be used from any thread."""

    def __init__(self, store: Store, people: PeopleZone) -> None:
        self._store = store
        self._people = people
        self.signer: Signer | None = None
        self._checkpoint: Callable[[], str] = lambda: ""
        store.commits.sign_with(self.sign)

    def anchor_with(self, checkpoint: Callable[[], str]) -> None:
        """Have decisions sign what ``checkpoint`` gives, too: the body of the journal's newest one."""
        self._checkpoint = checkpoint

    def needs_key(self, tool: str) -> bool:
        """Whether a person's ``tool`` has to be signed and no key is unlocked. Raise `JournalError`."""
        return self.signer is None and tool in DECISION_TOOLS and self._people.current().is_closed

    def close(self) -> None:
        """Lock the key, if one is unlocked."""
        if self.signer is not None:
            self.signer.lock()
            self.signer = None

    def sign(self, draft: Draft) -> Draft:
        """Return ``draft``, signed where it has to be, or may be and a key is unlocked.

        Raise `SignatureRequired` where it has to be signed and no key is unlocked, `MayNotDecide` where the
        signature would not count, and what the signer raises.
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
        evidence = _DraftEvidence(self._people, seq, draft.content)
        newest = _find_newest(journal, seq)
        statement = describe_decision(
            draft, people, self.signer.key, time, evidence, newest, self._checkpoint()
        )
        signed = sign_draft(draft, statement, self.signer.sign(statement.encode(), NAMESPACE))
        flaw = find_flaw(row_of(signed, seq, time), people, evidence)
        if flaw and is_required:
            raise MayNotDecide(person=draft.actor, tool=draft.tool, rule=flaw)
        return signed


def _find_newest(journal: Journal, before: int) -> Row | None:
    """Return the newest row before ``before`` that has a leaf, None where there is none."""
    while rows := journal.rows_before(before, limit=_PAGE):
        found = next((row for row in rows if has_leaf(row)), None)
        if found is not None:
            return found
        before = rows[-1].seq
    return None
