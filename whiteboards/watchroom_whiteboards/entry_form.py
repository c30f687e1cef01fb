"""Builds decisions, tasks and negotiations from the fields of their entries (BOARDS-3.1). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from watchroom.texts import Language

from watchroom_whiteboards import entry_fields
from watchroom_whiteboards.entry_fields import EntryField
from watchroom_whiteboards.items import BoardDecision, BoardNegotiation, BoardProblem, BoardTask, Rule
from watchroom_whiteboards.vocabulary import DECISION_STATUSES, FIELDS, TASK_STATUSES, EntryKind, FieldName

_FORMS: Final[Mapping[EntryKind, frozenset[FieldName]]] = {
    "decision": frozenset({"time", "proposer", "content", "signers", "status"}),
    "task": frozenset({"description", "status", "progress", "blockers"}),
    "negotiation": frozenset({"time", "parties", "topic", "conclusion"}),
}

Status = TypeVar("Status")


class EntryForm:
    """The fields of one entry. They are checked when they are read.

    - ``line``: the first line of the entry.
    - ``kind``: the kind of the entry, which determines its fields.
    - ``language``: the language of messages.
    - ``fields``: the fields on the board.

    Reading a field that is missing or invalid adds a problem to ``problems`` (attribute).
    """

    def __init__(self, line: int, kind: EntryKind, language: Language, fields: Sequence[EntryField]) -> None:
        self.line = line
        self.kind = kind
        self.problems: list[BoardProblem] = []
        self._language = language
        self._fields: dict[FieldName, EntryField] = {}
        for field in fields:
            if field.name in self._fields:
                self.problems.append(BoardProblem(field.line, "doubled_field", field.word))
            elif field.name in _FORMS[kind] and not entry_fields.is_placeholder(field.value):
                self._fields[field.name] = field

    def optional_text(self, name: FieldName) -> str:
        """Return the value of the field ``name``; empty if it is missing or means "none"."""
        value = self._fields[name].value if name in self._fields else ""
        return "" if entry_fields.is_empty_value(value) else value

    def text(self, name: FieldName) -> str:
        """Return the value of the field ``name``. If it is missing or empty, add a problem and return an
        empty string."""
        value = self.optional_text(name)
        if not value:
            self._missing(name)
        return value

    def required_names(self, name: FieldName) -> tuple[str, ...]:
        """Return the names in the field ``name``. A missing field is a problem, an empty field is not."""
        if name not in self._fields:
            self._missing(name)
        return entry_fields.parse_names(self.optional_text(name))

    def time(self) -> datetime | None:
        """Return the entry's time. If it is not ISO 8601 with a time zone, add a problem and return None."""
        value = self.text("time")
        moment = entry_fields.parse_time(value)
        if value and moment is None:
            self._wrong("time", "bad_time", value)
        return moment

    def status(self, known: Mapping[str, Status]) -> Status | None:
        """Return the entry's status from the table ``known`` (normalized word → status). If it is unknown,
        add a problem and return None."""
        value = self.text("status")
        state = entry_fields.parse_status(value, known)
        if value and state is None:
            self._wrong("status", "bad_status", value)
        return state

    def progress(self) -> int | None:
        """Return the entry's progress in per cent. If it is not a number from 0 to 100, add a problem and
        return None."""
        value = self.text("progress")
        percent = entry_fields.parse_progress(value)
        if value and percent is None:
            self._wrong("progress", "bad_progress", value)
        return percent

    def _missing(self, name: FieldName) -> None:
        line = self._fields[name].line if name in self._fields else self.line
        self.problems.append(BoardProblem(line, "missing_field", FIELDS[name][self._language]))

    def _wrong(self, name: FieldName, rule: Rule, value: str) -> None:
        self.problems.append(BoardProblem(self._fields[name].line, rule, value))


def parse_decision(entry: str, form: EntryForm) -> BoardDecision | None:
    """Return the decision with the id ``entry`` from its ``form``; None if the form has problems."""
    moment = form.time()
    proposer, content = form.text("proposer"), form.text("content")
    signers = form.required_names("signers")
    state = form.status(DECISION_STATUSES)
    if moment is None or state is None or form.problems:
        return None
    return BoardDecision(form.line, entry, moment, proposer, content, signers, state)


def parse_task(entry: str, form: EntryForm) -> BoardTask | None:
    """Return the task with the id ``entry`` from its ``form``; None if the form has problems."""
    description = form.text("description")
    state = form.status(TASK_STATUSES)
    percent = form.progress()
    if state is None or percent is None or form.problems:
        return None
    return BoardTask(form.line, entry, description, state, percent, form.optional_text("blockers"))


def parse_negotiation(entry: str, form: EntryForm) -> BoardNegotiation | None:
    """Return the negotiation with the id ``entry`` from its ``form``; None if the form has problems."""
    moment = form.time()
    parties = entry_fields.parse_names(form.text("parties"))
    topic = form.text("topic")
    if moment is None or form.problems:
        return None
    return BoardNegotiation(form.line, entry, moment, parties, topic, form.optional_text("conclusion"))
