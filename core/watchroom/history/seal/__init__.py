"""Tamper evidence: seals, which are signed roots of a Merkle tree over the rows, and their verification.

Changes to rows before the newest seal are detected. A user who can write the journal can also write new
seals; only copies of seals in other places reveal that (`Anchors`). No commit waits for a seal.
"""

from watchroom.errors import NotPublished
from watchroom.history.seal.anchors import FINGERPRINT, Anchor, Anchors, KeyPins, read_seal_file
from watchroom.history.seal.publisher import SealTarget
from watchroom.history.seal.rows import RecordedSeal, read_seals
from watchroom.history.seal.sealing import Sealing
from watchroom.history.seal.signers import Signers
from watchroom.history.seal.verification import Finding, FindingKind, SealReport, verify_seals
from watchroom.history.seal.writer import SealWriter

__all__ = [
    "FINGERPRINT",
    "Anchor",
    "Anchors",
    "Finding",
    "FindingKind",
    "KeyPins",
    "NotPublished",
    "RecordedSeal",
    "SealReport",
    "SealTarget",
    "SealWriter",
    "Sealing",
    "Signers",
    "read_seal_file",
    "read_seals",
    "verify_seals",
]
