"""The items of a board (BOARDS-3.1). Lines are numbered from 1."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from watchroom.texts import Language, catalogue

from watchroom_whiteboards.vocabulary import DecisionStatus, TaskStatus

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


class BoardDecision(NamedTuple):
    """A decision. ``signers`` is empty if nobody has signed it."""

    line: int
    id: str
    time: datetime
    proposer: str
    content: str
    signers: tuple[str, ...]
    status: DecisionStatus


class BoardMilestone(NamedTuple):
    """A milestone, ``done`` or not."""

    line: int
    text: str
    done: bool


class BoardTask(NamedTuple):
    """A task. ``progress``: in per cent. ``blockers``: empty without blockers."""

    line: int
    id: str
    description: str
    status: TaskStatus
    progress: int
    blockers: str


class BoardNegotiation(NamedTuple):
    """A negotiation. ``conclusion`` is empty before the end of the negotiation."""

    line: int
    id: str
    time: datetime
    parties: tuple[str, ...]
    topic: str
    conclusion: str


class BoardRisk(NamedTuple):
    """A risk, as text without Markdown marks."""

    line: int
    text: str


class BoardLogEntry(NamedTuple):
    """A line of a log. ``who``: empty in the log of a layer's board, because that has one writer."""

    line: int
    time: datetime
    who: str
    text: str


class BoardUpdate(NamedTuple):
    """A signed entry that was appended to the board. ``text`` is its Markdown."""

    line: int
    time: datetime
    who: str
    text: str


class BoardProblem(NamedTuple):
    """Text on the board that does not have the expected form, and is therefore not an item.

    - ``rule``: the rule that it breaks.
    - ``words``: a quotation of the text.
    """

    line: int
    rule: Rule
    words: str

    def message(self, language: Language = "en") -> str:
        """Return the problem and its correction as a text in ``language``."""
        texts = catalogue(language, "watchroom_whiteboards.texts")
        return texts(f"problem.{self.rule}", words=self.words)


class BoardItems(NamedTuple):
    """All items of a board, each kind in the order of its lines."""

    decisions: tuple[BoardDecision, ...] = ()
    milestones: tuple[BoardMilestone, ...] = ()
    tasks: tuple[BoardTask, ...] = ()
    negotiations: tuple[BoardNegotiation, ...] = ()
    risks: tuple[BoardRisk, ...] = ()
    log: tuple[BoardLogEntry, ...] = ()
    updates: tuple[BoardUpdate, ...] = ()
    problems: tuple[BoardProblem, ...] = ()
