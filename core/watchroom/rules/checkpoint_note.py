"""A checkpoint of the journal as text: how many rows there were, and the root of the tree over them. Pure.

It is the body that C2SP's tlog-checkpoint describes: the log, the size, the root in base64, and lines of our
own. A signature may follow after an empty line.
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from watchroom.errors import DeniedError
from watchroom.rules.merkle import HASH_BYTES

MOST_CHARACTERS: Final = 8_000
"""Of a checkpoint with its signature."""
NAMESPACE: Final = "watchroom-checkpoint"
"""Of its signature."""
ID_BYTES: Final = 16
_BODY: Final = re.compile(
    r"watchroom/([0-9a-f]{32})\n(0|[1-9][0-9]{0,17})\n([A-Za-z0-9+/]{43}=)\n"
    r"seq (0|[1-9][0-9]{0,18})\ntime (0|[1-9][0-9]{0,18})\n"
)


class InvalidCheckpoint(DeniedError):
    """A text is no checkpoint. Values: rule."""

    code = "invalid_checkpoint"


class Checkpoint(NamedTuple):
    """A seal of the first ``size`` leaves of a journal.

    - ``workspace``: the workspace's id, in hex.
    - ``root``: the root of the tree over the leaves.
    - ``seq``: the number of the row of the last leaf. Version 0.2.0 wrote the number of the last row, which
      may be a token's, and tokens have no leaf.
    - ``time``: nanoseconds since the epoch.
    """

    workspace: str
    size: int
    root: bytes
    seq: int
    time: int

    @property
    def short(self) -> str:
        """The beginning of its root in hex, for people to compare."""
        return self.root.hex()[:8]


class SignedCheckpoint(NamedTuple):
    """A ``checkpoint``, its ``body`` to the letter, and the ``signature`` of it (SSHSIG), empty if none."""

    checkpoint: Checkpoint
    body: str
    signature: str = ""

    @property
    def text(self) -> str:
        """As `parse_signed` reads it."""
        return f"{self.body}\n{self.signature}"


def render_checkpoint(checkpoint: Checkpoint) -> str:
    """The body of ``checkpoint``: what is signed."""
    root = base64.b64encode(checkpoint.root).decode()
    return (
        f"watchroom/{checkpoint.workspace}\n{checkpoint.size}\n{root}\n"
        f"seq {checkpoint.seq}\ntime {checkpoint.time}\n"
    )


def parse_checkpoint(body: str) -> Checkpoint:
    """The checkpoint with this ``body``. Raises `InvalidCheckpoint`."""
    found = _BODY.fullmatch(body) if len(body) <= MOST_CHARACTERS else None
    if found is None:
        raise InvalidCheckpoint(rule="checkpoint_form")
    workspace, size, root, seq, time = found.groups()
    checkpoint = Checkpoint(workspace, int(size), base64.b64decode(root), int(seq), int(time))
    if len(checkpoint.root) != HASH_BYTES or render_checkpoint(checkpoint) != body:
        raise InvalidCheckpoint(rule="checkpoint_form")
    return checkpoint


def parse_signed(text: str) -> SignedCheckpoint:
    """The checkpoint in ``text``: its body, and perhaps an empty line and its signature, which is not
    checked. Raises `InvalidCheckpoint`."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidCheckpoint(rule="checkpoint_form")
    body, separator, signature = text.partition("\n\n")
    body = f"{body}\n" if separator else body
    return SignedCheckpoint(parse_checkpoint(body), body, signature)
