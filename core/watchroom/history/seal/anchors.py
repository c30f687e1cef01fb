"""Data outside of the journal, with which a rewritten journal is detected.

Anchors are copies of seals: in this user's state folder, in the folder to which the user publishes seals, and
in signed decisions. The state folder also has the pinned keys of machines, and the row that closed a
workspace.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from glob import escape, glob
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import InvalidSeal
from watchroom.features.people.decisions import CHECKPOINT, SIGNED
from watchroom.kernel.checkout.rendering import verified_content
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.kernel.rules.row_leaf import hash_row
from watchroom.kernel.rules.seal_note import MAX_CHARACTERS, SignedSeal, parse_seal, parse_signed
from watchroom.model import ANSWER, Row
from watchroom.platform.files import replace_durably

AnchorKind: TypeAlias = Literal["state", "place", "published", "git", "given", "decision"]
"""The place of an anchor.

- ``state``: in the state folder, by the workspace's id.
- ``place``: in the state folder, by the place of the workspace.
- ``published``: in the folder to which the user publishes seals.
- ``git``: on a branch.
- ``given``: in a file given by the verifying person.
- ``decision``: in a decision signed by a person.
"""
FINGERPRINT: Final = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
SEAL_FOLDER: Final = "checkpoints"
"""The folder of seals in the state folder."""
_MAX_ANSWERS: Final = 100
"""Maximum number of signed answers that are read, newest first. Each covers all rows before it."""
_PINNED_ROW: Final = re.compile(r"([1-9][0-9]{0,17}) ([0-9a-f]{64})\n")
_MAX_PIN_BYTES: Final = 200
_MAX_KEYS_BYTES: Final = 64 * 1024
_log = logging.getLogger("watchroom")


class Anchor(NamedTuple):
    """A copy of a seal outside of the rows: its kind, its file or other place, and the seal."""

    kind: AnchorKind
    path: str
    signed: SignedSeal


class Anchors:
    """The anchors of one workspace in files.

    - ``state``: the state folder.
    - ``place``: the folder of the workspace, or the address of its database.
    - ``published``: the folder for published seals, as ``ID.txt``; empty for none.
    """

    def __init__(self, state: str, place: str, published: str = "") -> None:
        self._folder = os.path.join(state, SEAL_FOLDER)
        self._place = _place_file(state, place)
        self._published = published

    def read(self, workspace: str) -> list[Anchor]:
        """Return the anchors of ``workspace`` (its id). Files that cannot be read are logged and skipped."""
        files: list[tuple[AnchorKind, str]] = [("place", self._place)]
        if workspace:
            files.append(("state", self._file(workspace)))
        if workspace and self._published:
            files.append(("published", self._published_file(workspace)))
        found = [(kind, path, find_seal_file(path)) for kind, path in files]
        return [Anchor(kind, path, signed) for kind, path, signed in found if signed is not None]

    def newest_of(self, workspace: str) -> SignedSeal | None:
        """Return the stored seal of ``workspace`` that covers the most rows."""
        found = [each.signed for each in self.read(workspace)]
        mine = [each for each in found if each.seal.workspace == workspace]
        return max(mine, key=lambda each: each.seal.size, default=None)

    def keep(self, signed: SignedSeal) -> None:
        """Store ``signed``, which must continue the earlier stored seals. Raise OSError.

        An anchor of another workspace at this place is not overwritten.
        """
        workspace = signed.seal.workspace
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        replace_durably(self._file(workspace), signed.text.encode("ascii"))
        known = find_seal_file(self._place)
        if known is None or known.seal.workspace == workspace:
            replace_durably(self._place, signed.text.encode("ascii"))
        if self._published:
            replace_durably(self._published_file(workspace), signed.text.encode("ascii"))

    def find_replaced(self, workspace: str) -> SignedSeal | None:
        """Return the seal at this place if it is of another workspace than ``workspace``, else None."""
        known = find_seal_file(self._place)
        return None if known is None or known.seal.workspace == workspace else known

    def forget_replaced(self, workspace: str) -> None:
        """Assign this place to ``workspace`` if another workspace has it. Raise OSError.

        The other workspace's anchor by id is kept.
        """
        if self.find_replaced(workspace) is None:
            return
        mine = find_seal_file(self._file(workspace)) if workspace else None
        if mine is None:
            os.unlink(self._place)
        else:
            replace_durably(self._place, mine.text.encode("ascii"))

    def forget(self, workspace: str) -> None:
        """Forget ``workspace`` and its place, because it is removed: its seals in the state folder, and the
        pinned keys of machines. Published seals stay. Raise OSError.

        ``workspace``: the id, empty if it is unknown. Then only the place is forgotten.
        """
        paths = [self._place]
        if workspace:
            own = self._file(workspace)
            # The keys of machines, and the newest posted seals.
            paths += [own, *glob(f"{escape(own)}.*")]
        for path in paths:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _published_file(self, workspace: str) -> str:
        return os.path.join(self._published, f"{workspace}.txt")

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, workspace)


class KeyPins:
    """The pinned keys (fingerprints) of sealing machines, by workspace, in the folder ``state``.

    The first key of a machine is trusted and pinned. Later keys are reported.
    """

    def __init__(self, state: str) -> None:
        self._folder = os.path.join(state, SEAL_FOLDER)

    def read(self, workspace: str) -> frozenset[str] | None:
        """Return the keys pinned for ``workspace``, None if no keys were ever pinned. Raise OSError."""
        try:
            with open(self._file(workspace), "rb") as file:
                lines = file.read(_MAX_KEYS_BYTES).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return None
        return frozenset(each for each in lines if FINGERPRINT.fullmatch(each))

    def add(self, workspace: str, fingerprints: AbstractSet[str]) -> None:
        """Pin ``fingerprints`` for ``workspace``, in addition to earlier pins. Raise OSError."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        known = self.read(workspace) or frozenset()
        lines = "".join(f"{each}\n" for each in sorted(known | fingerprints))
        replace_durably(self._file(workspace), lines.encode("ascii"))

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, f"{workspace}.keys")


class EnrolmentPin:
    """The row with which people closed the workspace at ``place``, pinned in the folder ``state``.

    Anyone who can write to the journal can delete all enrolments. The workspace would then be open again, and
    decisions of anybody would count. Therefore this row is pinned outside of the journal, by place.
    """

    def __init__(self, state: str, place: str) -> None:
        self._path = f"{_place_file(state, place)}.people"

    def is_broken(self, journal: Journal) -> bool:
        """Whether the pinned row is missing from ``journal``, or changed. Raise `JournalError`, OSError."""
        pinned = self._read()
        if pinned is None:
            return False
        row = journal.row(pinned[0])
        if row is None or hash_row(row).hex() != pinned[1]:
            return True
        return verified_content(journal, row) is None

    def keep(self, founding: Row) -> None:
        """Pin ``founding`` if no row is pinned yet. Raise OSError."""
        if self._read() is None:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace_durably(self._path, f"{founding.seq} {hash_row(founding).hex()}\n".encode())

    def forget(self) -> None:
        """Forget the pinned row. Raise OSError."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def _read(self) -> tuple[int, str] | None:
        try:
            with open(self._path, "rb") as file:
                found = _PINNED_ROW.fullmatch(file.read(_MAX_PIN_BYTES).decode("ascii", "replace"))
        except FileNotFoundError:
            return None
        return (int(found[1]), found[2]) if found else None


def state_folder() -> str:
    """Return the folder in which this user keeps state about workspaces."""
    from platformdirs import user_state_path

    return str(user_state_path("watchroom", appauthor=False))


def read_seal_file(path: str) -> SignedSeal:
    """Return the seal in the file at ``path``. Raise OSError, `InvalidSeal`."""
    with open(path, "rb") as file:
        data = file.read(MAX_CHARACTERS + 1)
    return parse_signed(data.decode("ascii", "replace"))


def read_decision_anchors(journal: Journal, find_flaw: Callable[[Row], str]) -> Iterator[Anchor]:
    """Yield the seals that people signed with their newest answers. Raise `JournalError`.

    A person who rewrites the journal and seals it with this machine's key cannot create these signatures.
    Answers with a flaw according to ``find_flaw`` are skipped.
    """
    newest = journal.rows_before(
        journal.last_seq() + 1, limit=_MAX_ANSWERS, only=RowFilter(tool=ANSWER, outcome="ok")
    )
    for row in newest:
        statement = row.detail.get(SIGNED)
        if isinstance(statement, str) and not find_flaw(row):
            body = json.loads(statement).get(CHECKPOINT)
            if isinstance(body, str) and body:
                try:
                    signed = SignedSeal(parse_seal(body), body)
                except InvalidSeal:
                    continue
                yield Anchor("decision", f"{row.actor} #{row.seq}", signed)


def _place_file(state: str, place: str) -> str:
    return os.path.join(state, SEAL_FOLDER, f"at-{hashlib.sha256(place.encode()).hexdigest()[:32]}")


def find_seal_file(path: str) -> SignedSeal | None:
    """Return the seal in the file at ``path``, None without a file. A damaged file is logged and skipped."""
    try:
        return read_seal_file(path)
    except FileNotFoundError:
        return None
    except (OSError, InvalidSeal) as error:
        _log.warning("%s is skipped: %s", path, error)
        return None
