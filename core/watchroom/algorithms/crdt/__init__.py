"""Data types that merge concurrent edits of several replicas. Pure: no files, no journal, no network."""

from watchroom.algorithms.crdt.clock import HybridClock, Stamp, agent_of, name_replica
from watchroom.algorithms.crdt.counter import PNCounter
from watchroom.algorithms.crdt.document import FIELD_TYPES, Delta, Document, Field, FieldType, check_schema
from watchroom.algorithms.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.algorithms.crdt.orset import ORSet
from watchroom.algorithms.crdt.text import Text, TextEdit, TextRun

__all__ = [
    "FIELD_TYPES",
    "Delta",
    "Document",
    "Field",
    "FieldType",
    "HybridClock",
    "LWWMap",
    "LWWRegister",
    "ORSet",
    "PNCounter",
    "Stamp",
    "StampedValue",
    "Text",
    "TextEdit",
    "TextRun",
    "agent_of",
    "check_schema",
    "name_replica",
]
