"""Checkpoints that are kept elsewhere than in the journal: in this user's folder for states, and in a folder
that this user chose to publish. By these a journal is found out that was made anew as a whole."""

from __future__ import annotations

import hashlib
import logging
import os
from typing import Literal, NamedTuple, TypeAlias

from watchroom.files import replace_durably
from watchroom.rules.checkpoint_note import (
    MOST_CHARACTERS,
    InvalidCheckpoint,
    SignedCheckpoint,
    parse_signed,
)
from watchroom.transparency.state_folder import checkpoint_folder

AnchorKind: TypeAlias = Literal["state", "place", "published", "git", "given", "decision"]
"""Kept in the state folder by the workspace's id, or by the place where it is; published in a folder, or on a
branch; named by a person who asks; or signed by a person with a decision."""
_log = logging.getLogger("watchroom")


class Anchor(NamedTuple):
    """A checkpoint that is kept elsewhere: how, and in which file."""

    kind: AnchorKind
    path: str
    signed: SignedCheckpoint


class Anchors:
    """The checkpoints of the workspace at ``place`` (its folder, or the address of its database) that are
    kept in the folder ``state``, and in the folder ``published`` (empty: in none), there as
    ``ID.txt``."""

    def __init__(self, state: str, place: str, published: str = "") -> None:
        self._folder = checkpoint_folder(state)
        self._place = os.path.join(self._folder, f"at-{hashlib.sha256(place.encode()).hexdigest()[:32]}")
        self._published = published

    def read(self, workspace: str) -> list[Anchor]:
        """What is kept of ``workspace`` (its id). What cannot be read is logged."""
        files: list[tuple[AnchorKind, str]] = [("place", self._place)]
        if workspace:
            files.append(("state", self._file(workspace)))
        if workspace and self._published:
            files.append(("published", self._published_file(workspace)))
        found = [(kind, path, _read(path)) for kind, path in files]
        return [Anchor(kind, path, signed) for kind, path, signed in found if signed is not None]

    def newest_of(self, workspace: str) -> SignedCheckpoint | None:
        """The largest checkpoint that is kept of ``workspace``."""
        found = [each.signed for each in self.read(workspace)]
        mine = [each for each in found if each.checkpoint.workspace == workspace]
        return max(mine, key=lambda each: each.checkpoint.size, default=None)

    def keep(self, signed: SignedCheckpoint) -> None:
        """Keep ``signed``, which goes on from what was kept. What another workspace left at this place stays.
        Raises OSError."""
        workspace = signed.checkpoint.workspace
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        replace_durably(self._file(workspace), signed.text.encode("ascii"))
        known = _read(self._place)
        if known is None or known.checkpoint.workspace == workspace:
            replace_durably(self._place, signed.text.encode("ascii"))
        if self._published:
            replace_durably(self._published_file(workspace), signed.text.encode("ascii"))

    def find_replaced(self, workspace: str) -> SignedCheckpoint | None:
        """The checkpoint that another workspace than ``workspace`` left at this place, None where none
        did."""
        known = _read(self._place)
        return None if known is None or known.checkpoint.workspace == workspace else known

    def forget_replaced(self, workspace: str) -> None:
        """Let go of what another workspace than ``workspace`` left at this place, which is that one's from
        now on. What is kept of the other by its id stays. Raises OSError."""
        if self.find_replaced(workspace) is None:
            return
        mine = _read(self._file(workspace)) if workspace else None
        if mine is None:
            os.unlink(self._place)
        else:
            replace_durably(self._place, mine.text.encode("ascii"))

    def _published_file(self, workspace: str) -> str:
        return os.path.join(self._published, f"{workspace}.txt")

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, workspace)


def read_given(path: str) -> SignedCheckpoint:
    """The checkpoint in the file at ``path``. Raises OSError, `InvalidCheckpoint`."""
    with open(path, "rb") as file:
        data = file.read(MOST_CHARACTERS + 1)
    return parse_signed(data.decode("ascii", "replace"))


def _read(path: str) -> SignedCheckpoint | None:
    try:
        return read_given(path)
    except FileNotFoundError:
        return None
    except (OSError, InvalidCheckpoint) as error:
        _log.warning("%s is passed over: %s", path, error)
        return None
