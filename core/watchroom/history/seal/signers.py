"""The signers of seals: enrolled people with their keys, and machines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final

from watchroom.algorithms.sshsig import parse_signing_key, verify
from watchroom.errors import InvalidSignature
from watchroom.features.people.service import PeopleRegistry
from watchroom.history.seal.rows import RecordedSeal
from watchroom.kernel.rules.seal_note import NAMESPACE, SignedSeal
from watchroom.platform.signing import KeySigner, Signer

_MACHINE_KEY: Final = "machine.key"
_KEY_BYTES: Final = 32


class Signers:
    """The signers of one journal's seals.

    - ``people``: the enrolled people, with the rows between which they held each key.
    - ``machines``: the fingerprints of the trusted machines.
    """

    def __init__(self, people: PeopleRegistry, machines: AbstractSet[str] = frozenset()) -> None:
        self._people = people
        self._machines = machines
        self._terms: dict[str, list[tuple[int, str]]] = {}

    def find_person(self, fingerprint: str, seq: int) -> str:
        """Return the person who held the key when row ``seq`` was written, empty if nobody did. Raise
        `JournalError`."""
        terms = self._terms_of(fingerprint)
        return next((person for since, person in reversed(terms) if since < seq), "")

    def find_owner(self, fingerprint: str) -> str:
        """Return the last person who held the key, at any time; empty if there is none. Raise
        `JournalError`."""
        return next((person for _, person in reversed(self._terms_of(fingerprint)) if person), "")

    def is_machine(self, fingerprint: str) -> bool:
        """Whether the key belongs to a trusted machine."""
        return fingerprint in self._machines

    def machines_of(self, recorded: Iterable[RecordedSeal]) -> set[str]:
        """Return the keys that signed ``recorded`` and were never held by a person. Raise `JournalError`."""
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


def read_fingerprint(signed: SignedSeal) -> str:
    """Return the fingerprint of the key that signed ``signed``; empty if it is unsigned. Raise
    `InvalidSignature`."""
    if not signed.signature:
        return ""
    key = parse_signing_key(signed.signature)
    verify(signed.signature, signed.body.encode(), NAMESPACE, key)
    return key.fingerprint


def machine_signer(state: str) -> Signer | None:
    """Return the signer with this machine's key in the folder ``state``; create the key if it is missing.

    The key signs while no person's key is unlocked. It has no passphrase, so any program of this user can use
    it. A seal with this signature proves its machine to people who already know the public key.

    Return None while another process writes the key. Raise OSError.
    """
    path = os.path.join(state, _MACHINE_KEY)
    os.makedirs(state, mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
    with open(path, "rb") as file:
        private = file.read(_KEY_BYTES + 1)
    if len(private) != _KEY_BYTES:
        # Another process is writing the key. The next seal will be signed.
        return None
    return KeySigner(private)
