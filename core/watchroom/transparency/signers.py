"""Who signs checkpoints: people, by the keys that they were enrolled with as of a row, and machines."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from watchroom.rules.checkpoint_note import NAMESPACE, SignedCheckpoint
from watchroom.sshsig import InvalidSignature, SigningNotInstalled, verify
from watchroom.sshsig.signature import key_of
from watchroom.transparency.checkpoint_rows import RecordedCheckpoint
from watchroom.zones.people import PeopleZone


class Signers:
    """Knows the signers of one journal's checkpoints: its ``people``, and the ``machines`` whose keys
    (fingerprints) are trusted."""

    def __init__(self, people: PeopleZone, machines: AbstractSet[str] = frozenset()) -> None:
        self._people = people
        self._machines = machines
        self._terms: dict[str, list[tuple[int, str]]] = {}

    def find_person(self, fingerprint: str, seq: int) -> str:
        """Whose key it was when row ``seq`` was made, empty where it was nobody's. Raises `JournalError`."""
        terms = self._terms_of(fingerprint)
        return next((person for since, person in reversed(terms) if since < seq), "")

    def find_owner(self, fingerprint: str) -> str:
        """Who last had this key, at any time; empty where nobody did. Raises `JournalError`."""
        return next((person for _, person in reversed(self._terms_of(fingerprint)) if person), "")

    def is_machine(self, fingerprint: str) -> bool:
        """Whether it is the key of a machine that is trusted."""
        return fingerprint in self._machines

    def machines_of(self, recorded: Iterable[RecordedCheckpoint]) -> set[str]:
        """The keys by which ``recorded`` checkpoints are signed that never were a person's. Raises
        `JournalError`."""
        found: set[str] = set()
        for each in recorded:
            try:
                fingerprint = read_fingerprint(each.signed) if each.signed is not None else ""
            except InvalidSignature:
                continue
            if fingerprint and not self.find_owner(fingerprint):
                found.add(fingerprint)
        return found

    def _terms_of(self, fingerprint: str) -> list[tuple[int, str]]:
        if fingerprint not in self._terms:
            self._terms[fingerprint] = self._people.key_terms(fingerprint)
        return self._terms[fingerprint]


def read_fingerprint(signed: SignedCheckpoint) -> str:
    """The fingerprint of the key that signed it; empty where it is unsigned, or that cannot be checked here.
    Raises `InvalidSignature`."""
    if not signed.signature:
        return ""
    key = key_of(signed.signature)
    try:
        verify(signed.signature, signed.body.encode(), NAMESPACE, key)
    except SigningNotInstalled:
        return ""
    return key.fingerprint
