"""Signs the decisions of the person at this process, on their way into the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from watchroom.model import Draft, Note
from watchroom.rules.append import row_of
from watchroom.rules.decision_errors import MayNotDecide, SignatureRequired
from watchroom.rules.decisions import (
    DECISION_TOOLS,
    NAMESPACE,
    describe_decision,
    find_flaw,
    is_decision,
    is_word,
    sign_draft,
)
from watchroom.rules.people import ZONE
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store

if TYPE_CHECKING:
    from watchroom.signing import Signer


class DecisionSigning:
    """Signs with the ``signer`` that a person has unlocked, what would else not count in the closed workspace
    of ``store``, by what ``people`` says of them. May be used from any thread."""

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
        """Whether a person's ``tool`` has to be signed, and no key is unlocked. Raises `JournalError`."""
        return self.signer is None and tool in DECISION_TOOLS and self._people.current().is_closed

    def close(self) -> None:
        """Lock the key, if one is unlocked."""
        if self.signer is not None:
            self.signer.lock()
            self.signer = None

    def sign(self, draft: Draft) -> Draft:
        """``draft``, signed where it is a decision that has to be, or a message and a key is unlocked. Raises
        `SignatureRequired` where no key is unlocked, `MayNotDecide` where the signature would not count, and
        what the signer raises."""
        is_told = is_word(draft)
        if not (is_decision(draft) or is_told) or (isinstance(draft, Note) and draft.outcome != "ok"):
            return draft
        people = self._people.current()
        if not people.is_closed and draft.zone != ZONE:
            return draft
        if self.signer is None:
            if is_told:
                return draft
            raise SignatureRequired(tool=draft.tool)
        journal = self._store.journal
        time = journal.now()
        signed = describe_decision(draft, people, self.signer.key, time, journal.row, self._checkpoint())
        done = sign_draft(draft, signed, self.signer.sign(signed.encode(), NAMESPACE))
        flaw = find_flaw(row_of(done, journal.last_seq() + 1, time), people, journal.row, draft.content)
        if flaw and not is_told:
            raise MayNotDecide(person=draft.actor, tool=draft.tool, rule=flaw)
        return done
