"""Data types that replicas edit apart and that merge by themselves. Pure: no file, no journal, no network."""

from watchroom.crdt.clock import HybridClock, Stamp, agent_of, name_replica
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import FIELD_TYPES, Delta, Document, Field, FieldType, check_schema
from watchroom.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.crdt.orset import ORSet
from watchroom.crdt.text import Run, Text, TextEdit

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
    "Run",
    "Stamp",
    "StampedValue",
    "Text",
    "TextEdit",
    "agent_of",
    "check_schema",
    "name_replica",
]
