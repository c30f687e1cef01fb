"""What a board says, item by item (spec 3 §3.1). Lines are counted from 1."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from watchroom.texts import Language, catalogue

from watchroom_whiteboards.kinds import DecisionStatus, TaskStatus

Rule: TypeAlias = Literal[
    "no_id",
    "doubled_id",
    "outside_entry",
    "missing_field",
    "doubled_field",
    "bad_time",
    "bad_status",
    "bad_progress",
    "no_box",
    "no_words",
    "no_time",
    "no_author",
    "too_long",
]


class Decision(NamedTuple):
    """A decision. ``signers`` is empty where nobody signed it yet."""

    line: int
    id: str
    time: datetime
    proposer: str
    content: str
    signers: tuple[str, ...]
    status: DecisionStatus


class Milestone(NamedTuple):
    line: int
    text: str
    done: bool


class Task(NamedTuple):
    """A task. ``progress`` is in per cent; ``blockers`` is empty where nothing blocks it."""

    line: int
    id: str
    description: str
    status: TaskStatus
    progress: int
    blockers: str


class Negotiation(NamedTuple):
    """A negotiation. ``conclusion`` is empty while there is none."""

    line: int
    id: str
    time: datetime
    parties: tuple[str, ...]
    topic: str
    conclusion: str


class Risk(NamedTuple):
    line: int
    text: str


class LogEntry(NamedTuple):
    """A line of a log. ``who`` is empty in the log of a layer's board, which has one writer."""

    line: int
    time: datetime
    who: str
    text: str


class Update(NamedTuple):
    """A signed entry that was appended to the board. ``text`` is its Markdown."""

    line: int
    time: datetime
    who: str
    text: str


class Problem(NamedTuple):
    """A part that is not as it should be, and is therefore no item. ``words`` are those concerned."""

    line: int
    rule: Rule
    words: str

    def message(self, language: Language = "en") -> str:
        """What is wrong, and how it should be."""
        texts = catalogue(language, "watchroom_whiteboards.texts")
        return texts(f"problem.{self.rule}", words=self.words)


class Meaning(NamedTuple):
    """All that a board says, each kind in the order in which it stands there."""

    decisions: tuple[Decision, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    tasks: tuple[Task, ...] = ()
    negotiations: tuple[Negotiation, ...] = ()
    risks: tuple[Risk, ...] = ()
    log: tuple[LogEntry, ...] = ()
    updates: tuple[Update, ...] = ()
    problems: tuple[Problem, ...] = ()
