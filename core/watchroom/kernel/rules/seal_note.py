"""A seal of the journal as text: the number of leaves, and the root of the Merkle tree over them. Pure.

The format is C2SP's tlog-checkpoint: the name of the log, the size, the root in base64, and two additional
lines. A signature may follow after an empty line.
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from watchroom.algorithms.merkle import HASH_BYTES
from watchroom.errors import InvalidSeal

MAX_CHARACTERS: Final = 8_000
"""Maximum characters of a seal with its signature."""
NAMESPACE: Final = "watchroom-checkpoint"
"""The SSHSIG namespace of signatures of seals."""
ID_BYTES: Final = 16
_BODY: Final = re.compile(
    r"watchroom/([0-9a-f]{32})\n(0|[1-9][0-9]{0,17})\n([A-Za-z0-9+/]{43}=)\n"
    r"seq (0|[1-9][0-9]{0,18})\ntime (0|[1-9][0-9]{0,18})\n"
)


class Seal(NamedTuple):
    """A seal of the first ``size`` leaves of a journal.

    - ``workspace``: the workspace's id, in hex.
    - ``root``: the root of the tree over the leaves.
    - ``seq``: the number of the row of the last leaf. Version 0.2.0 wrote the number of the last row. That
      may be a token's row, which has no leaf.
    - ``time``: nanoseconds since the epoch.
    """

    workspace: str
    size: int
    root: bytes
    seq: int
    time: int

    @property
    def short(self) -> str:
        """The first eight hex digits of the root, for people to compare."""
        return self.root.hex()[:8]


class SignedSeal(NamedTuple):
    """A ``seal``, its exact ``body``, and the ``signature`` of the body (SSHSIG; empty if unsigned)."""

    seal: Seal
    body: str
    signature: str = ""

    @property
    def text(self) -> str:
        """The text that `parse_signed` reads."""
        return f"{self.body}\n{self.signature}"


def render_seal(seal: Seal) -> str:
    """Render the body of ``seal``. Signers sign this text."""
    root = base64.b64encode(seal.root).decode()
    return f"watchroom/{seal.workspace}\n{seal.size}\n{root}\nseq {seal.seq}\ntime {seal.time}\n"


def parse_seal(body: str) -> Seal:
    """Return the seal with this ``body``. Raise `InvalidSeal`."""
    found = _BODY.fullmatch(body) if len(body) <= MAX_CHARACTERS else None
    if found is None:
        raise InvalidSeal(rule="checkpoint_form")
    workspace, size, root, seq, time = found.groups()
    seal = Seal(workspace, int(size), base64.b64decode(root), int(seq), int(time))
    if len(seal.root) != HASH_BYTES or render_seal(seal) != body:
        raise InvalidSeal(rule="checkpoint_form")
    return seal


def parse_signed(text: str) -> SignedSeal:
    """Return the seal in ``text``: a body, optionally followed by an empty line and a signature.

    The signature is not checked. Raise `InvalidSeal`.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidSeal(rule="checkpoint_form")
    body, separator, signature = text.partition("\n\n")
    body = f"{body}\n" if separator else body
    return SignedSeal(parse_seal(body), body, signature)
