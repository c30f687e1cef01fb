"""Checkpoints that are kept elsewhere than in the journal: in this user's folder for states, and in a folder
that this user chose to publish. By these a journal is found out that was made anew as a whole."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.rules.checkpoint_note import (
    MOST_CHARACTERS,
    InvalidCheckpoint,
    SignedCheckpoint,
    parse_signed,
)

AnchorKind: TypeAlias = Literal["state", "place", "published", "given", "decision"]
"""Kept in the state folder by the workspace's id, or by the place where it is; published; named by a
person who asks; or signed by a person with a decision."""
_log = logging.getLogger("watchroom")
_FOLDER: Final = "checkpoints"


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
        self._folder = os.path.join(state, _FOLDER)
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
        _replace(self._file(workspace), signed.text)
        known = _read(self._place)
        if known is None or known.checkpoint.workspace == workspace:
            _replace(self._place, signed.text)
        if self._published:
            _replace(self._published_file(workspace), signed.text)

    def _published_file(self, workspace: str) -> str:
        return os.path.join(self._published, f"{workspace}.txt")

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, workspace)


def state_folder() -> str:
    """This user's folder for states."""
    from platformdirs import user_state_path

    return str(user_state_path("watchroom", appauthor=False))


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


def _replace(path: str, text: str) -> None:
    folder = os.path.dirname(path) or "."
    fd, scratch = tempfile.mkstemp(prefix=".checkpoint-", dir=folder)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
