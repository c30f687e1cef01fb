"""What a board says: its decisions, milestones, tasks, negotiations, risks and log (spec 3 §3.1, §7.1). Pure.

What does not have the form of the templates is reported with its line, never guessed. What still is a
placeholder of the template says nothing.
"""

from __future__ import annotations

from typing import Final, TypeVar

from watchroom.texts import Language

from watchroom_whiteboards import values
from watchroom_whiteboards.forms import Form, decision, negotiation, task
from watchroom_whiteboards.items import (
    Decision,
    LogEntry,
    Meaning,
    Milestone,
    Negotiation,
    Problem,
    Risk,
    Rule,
    Task,
    Update,
)
from watchroom_whiteboards.kinds import FIELDS, EntryKind, field_name
from watchroom_whiteboards.passages import LISTS, Passage, passages, update_time
from watchroom_whiteboards.reading import Entry, entries, first_line, without_marks

_LONGEST_WORDS: Final = 200
Item = TypeVar("Item")
_BOXES: Final = {"[ ]": False, "[x]": True, "[X]": True}


def meaning(text: str) -> Meaning:
    """What the board with that text says. Only the newest parts of a very long board are read."""
    reading = _Reading(text.encode())
    for part in passages(reading.data):
        reading.read(part)
    return reading.meaning()


class _Reading:
    """A board while it is read, part by part from its start."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._counted = 0
        self._line = 1
        self._decisions: list[Decision] = []
        self._milestones: list[Milestone] = []
        self._tasks: list[Task] = []
        self._negotiations: list[Negotiation] = []
        self._risks: list[Risk] = []
        self._log: list[LogEntry] = []
        self._updates: list[Update] = []
        self._problems: list[Problem] = []
        self._ids: set[tuple[EntryKind, str]] = set()

    def meaning(self) -> Meaning:
        return Meaning(
            tuple(self._decisions),
            tuple(self._milestones),
            tuple(self._tasks),
            tuple(self._negotiations),
            tuple(self._risks),
            tuple(self._log),
            tuple(self._updates),
            tuple(sorted(self._problems, key=lambda problem: problem.line)),
        )

    def read(self, part: Passage) -> None:
        line = self._line_at(part.heading.start)
        if part.role == "too_long":
            self._problem(line, "too_long", part.heading.title)
        elif part.role == "update":
            self._read_update(part, line)
        else:
            source = self.data[part.start : part.end].decode()
            found = entries(source, self._line_at(part.start)) if source.strip() else []
            if part.role == "entry":
                self._read_entry(part.heading.title, line, found)
            elif part.kind in LISTS:
                for entry in found:
                    self._read_line(part, entry)
            else:
                self._read_outside(found)

    def _line_at(self, offset: int) -> int:
        if offset < self._counted:
            self._counted, self._line = 0, 1
        passed = (self._counted, offset)
        self._line += (
            self.data.count(b"\n", *passed)
            + self.data.count(b"\r", *passed)
            - self.data.count(b"\r\n", *passed)
        )
        self._counted = offset
        return self._line

    def _problem(self, line: int, rule: Rule, words: str) -> None:
        shown = words if len(words) <= _LONGEST_WORDS else words[:_LONGEST_WORDS] + "…"
        self._problems.append(Problem(line, rule, shown))

    # -- lists

    def _read_line(self, part: Passage, entry: Entry) -> None:
        if values.is_nothing(entry.words) and not entry.more:
            return
        if part.kind == "milestones":
            self._read_milestone(entry)
        elif part.kind == "risks":
            text = _joined(without_marks(entry.words), entry.more)
            if not values.is_placeholder(text):
                self._risks.append(Risk(entry.line, text))
        else:
            self._read_log(entry, has_author=part.kind == "update_log")

    def _read_milestone(self, entry: Entry) -> None:
        box, after = entry.words[:3], entry.words[3:]
        text = _joined(without_marks(after), entry.more)
        if box not in _BOXES or (after and not after[0].isspace()):
            whole = without_marks(entry.words)
            if not values.is_placeholder_milestone(whole):
                self._problem(entry.line, "no_box", whole)
        elif not text:
            self._problem(entry.line, "no_words", entry.words)
        elif not values.is_placeholder_milestone(text):
            self._milestones.append(Milestone(entry.line, text, _BOXES[box]))

    def _read_log(self, entry: Entry, has_author: bool) -> None:
        stamp, closed, after = entry.words.removeprefix("[").partition("]")
        whole = _joined(without_marks(after), entry.more)
        who, text = values.split_author(whole) if has_author else ("", whole)
        # Followed by one of these, what stands in brackets is the text of a link.
        if not entry.words.startswith("[") or not closed or after[:1] in ("(", "[", ":"):
            if not values.is_placeholder(entry.words):
                self._problem(entry.line, "no_time", entry.words)
            return
        if all(values.is_placeholder(each) for each in (stamp, who or text, text)):
            return
        moment = values.time(stamp)
        if moment is None:
            self._problem(entry.line, "bad_time", stamp)
        if has_author and (not who or values.is_placeholder(who)):
            self._problem(entry.line, "no_author", entry.words)
        elif not text or values.is_placeholder(text):
            self._problem(entry.line, "no_words", entry.words)
        elif moment is not None:
            self._log.append(LogEntry(entry.line, moment, who, text))

    def _read_outside(self, found: list[Entry]) -> None:
        """A list above the entries of a section: its writer may have meant entries."""
        for entry in found:
            words = without_marks(entry.words)
            if not values.is_nothing(words) and not values.is_placeholder(words):
                self._problem(entry.line, "outside_entry", words)
                return

    # -- parts with a heading

    def _read_update(self, part: Passage, line: int) -> None:
        stamp = update_time(part.heading.title) or ""
        if values.is_placeholder(stamp):
            return
        moment = values.time(stamp)
        if moment is None:
            self._problem(line, "bad_time", stamp)
        source = self.data[part.start : part.end]
        words, body = first_line(source) or ("", 0)
        name, who = values.split_field(without_marks(words)) or ("", "")
        if field_name(name) != "author" or not who:
            author = FIELDS["author"][_language_of(part.heading.title)]
            self._problem(line, "missing_field", author)
        elif moment is not None:
            text = source[body:].decode().strip("\r\n").rstrip()
            self._updates.append(Update(line, moment, who, text))

    def _read_entry(self, title: str, line: int, found: list[Entry]) -> None:
        named = values.entry_title(title)
        fields = [field for entry in found if (field := values.field(entry))]
        if named is None or values.is_placeholder(named[1]):
            if named is None or not all(values.is_placeholder(field.value) for field in fields):
                self._problem(line, "no_id", title)
            return
        if named in self._ids:
            self._problem(line, "doubled_id", named[1])
            return
        self._ids.add(named)
        kind, name = named
        form = Form(line, kind, _language_of(title), fields)
        if kind == "decision":
            _add(self._decisions, decision(name, form))
        elif kind == "task":
            _add(self._tasks, task(name, form))
        else:
            _add(self._negotiations, negotiation(name, form))
        for problem in form.problems:
            self._problem(*problem)


def _add(items: list[Item], item: Item | None) -> None:
    if item is not None:
        items.append(item)


def _joined(words: str, more: str) -> str:
    return f"{words}\n{more}".strip()


def _language_of(title: str) -> Language:
    return "en" if title[:1].isascii() else "zh"
