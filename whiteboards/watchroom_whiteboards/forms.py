"""Decisions, tasks and negotiations from the fields of their entries (spec 3 §3.1). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from watchroom.texts import Language

from watchroom_whiteboards import values
from watchroom_whiteboards.items import Decision, Negotiation, Problem, Rule, Task
from watchroom_whiteboards.kinds import DECISION_STATUSES, FIELDS, TASK_STATUSES, EntryKind, FieldName
from watchroom_whiteboards.values import Field

_FORMS: Final[Mapping[EntryKind, frozenset[FieldName]]] = {
    "decision": frozenset({"time", "proposer", "content", "signers", "status"}),
    "task": frozenset({"description", "status", "progress", "blockers"}),
    "negotiation": frozenset({"time", "parties", "topic", "conclusion"}),
}

Status = TypeVar("Status")


class Form:
    """The fields of one entry. What is wrong with one is among ``problems`` once it was asked for."""

    def __init__(self, line: int, kind: EntryKind, language: Language, fields: Sequence[Field]) -> None:
        self.line = line
        self.kind = kind
        self.problems: list[Problem] = []
        self._language = language
        self._fields: dict[FieldName, Field] = {}
        for field in fields:
            if field.name in self._fields:
                self.problems.append(Problem(field.line, "doubled_field", field.word))
            elif field.name in _FORMS[kind] and not values.is_placeholder(field.value):
                self._fields[field.name] = field

    def text_if_any(self, name: FieldName) -> str:
        value = self._fields[name].value if name in self._fields else ""
        return "" if values.is_nothing(value) else value

    def text(self, name: FieldName) -> str:
        value = self.text_if_any(name)
        if not value:
            self._missing(name)
        return value

    def names_if_any(self, name: FieldName) -> tuple[str, ...]:
        """The names in a field that may hold none, but must be there."""
        if name not in self._fields:
            self._missing(name)
        return values.names(self.text_if_any(name))

    def time(self) -> datetime | None:
        value = self.text("time")
        moment = values.time(value)
        if value and moment is None:
            self._wrong("time", "bad_time", value)
        return moment

    def status(self, known: Mapping[str, Status]) -> Status | None:
        value = self.text("status")
        state = values.status(value, known)
        if value and state is None:
            self._wrong("status", "bad_status", value)
        return state

    def progress(self) -> int | None:
        value = self.text("progress")
        percent = values.progress(value)
        if value and percent is None:
            self._wrong("progress", "bad_progress", value)
        return percent

    def _missing(self, name: FieldName) -> None:
        line = self._fields[name].line if name in self._fields else self.line
        self.problems.append(Problem(line, "missing_field", FIELDS[name][self._language]))

    def _wrong(self, name: FieldName, rule: Rule, value: str) -> None:
        self.problems.append(Problem(self._fields[name].line, rule, value))


def decision(entry: str, form: Form) -> Decision | None:
    moment = form.time()
    proposer, content = form.text("proposer"), form.text("content")
    signers = form.names_if_any("signers")
    state = form.status(DECISION_STATUSES)
    if moment is None or state is None or form.problems:
        return None
    return Decision(form.line, entry, moment, proposer, content, signers, state)


def task(entry: str, form: Form) -> Task | None:
    description = form.text("description")
    state = form.status(TASK_STATUSES)
    percent = form.progress()
    if state is None or percent is None or form.problems:
        return None
    return Task(form.line, entry, description, state, percent, form.text_if_any("blockers"))


def negotiation(entry: str, form: Form) -> Negotiation | None:
    moment = form.time()
    parties = values.names(form.text("parties"))
    topic = form.text("topic")
    if moment is None or form.problems:
        return None
    return Negotiation(form.line, entry, moment, parties, topic, form.text_if_any("conclusion"))
