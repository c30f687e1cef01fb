"""Tamper evidence: a tree over the journal's rows, checkpoints of it as rows, and what compares them.

It follows behind: no commit waits for it. What was changed before the newest checkpoint is found; that the
same user cannot make all checkpoints anew is due only to those kept elsewhere (`Anchors`).
"""

from watchroom.transparency.anchors import Anchor, Anchors, read_given
from watchroom.transparency.checkpoint_rows import RecordedCheckpoint, recorded_checkpoints
from watchroom.transparency.checkpoint_writer import CheckpointWriter
from watchroom.transparency.key_pins import FINGERPRINT, KeyPins
from watchroom.transparency.publisher import CheckpointBranch, CheckpointTarget, NotPublished
from watchroom.transparency.sealing import Seal, Sealing
from watchroom.transparency.signers import Signers
from watchroom.transparency.verification import (
    Finding,
    FindingKind,
    SealReport,
    verify_checkpoints,
)

__all__ = [
    "FINGERPRINT",
    "Anchor",
    "Anchors",
    "CheckpointBranch",
    "CheckpointTarget",
    "CheckpointWriter",
    "Finding",
    "FindingKind",
    "KeyPins",
    "NotPublished",
    "RecordedCheckpoint",
    "Seal",
    "SealReport",
    "Sealing",
    "Signers",
    "read_given",
    "recorded_checkpoints",
    "verify_checkpoints",
]
