"""Parses a board: decisions, milestones, tasks, negotiations, risks and log (BOARDS-3.1, BOARDS-7.1). Pure.

Text that does not follow the templates is reported with its line, and never guessed. Placeholders of the
template are left out.
"""

from __future__ import annotations

from typing import Final, TypeVar

from watchroom.texts import Language

from watchroom_whiteboards import entry_fields
from watchroom_whiteboards.entry_form import EntryForm, parse_decision, parse_negotiation, parse_task
from watchroom_whiteboards.item_blocks import LISTS, ItemBlock, find_item_blocks, parse_update_time
from watchroom_whiteboards.items import (
    BoardDecision,
    BoardItems,
    BoardLogEntry,
    BoardMilestone,
    BoardNegotiation,
    BoardProblem,
    BoardRisk,
    BoardTask,
    BoardUpdate,
    Rule,
)
from watchroom_whiteboards.list_entries import ListEntry, first_line, parse_list_entries, strip_marks
from watchroom_whiteboards.vocabulary import FIELDS, EntryKind, field_name

_MAX_PROBLEM_CHARACTERS: Final = 200
Item = TypeVar("Item")
_BOXES: Final = {"[ ]": False, "[x]": True, "[X]": True}


def parse_board(text: str) -> BoardItems:
    """Parse ``text``, the Markdown of a board, into its items and problems.

    Only the newest entries of a very long board are parsed. A problem ``too_long`` then reports it.

        found = parse_board("## Milestones\n- [x] Outline agreed\n")
        found.milestones[0].done  # True
    """
    parser = _BoardParser(text.encode())
    for block in find_item_blocks(parser.data):
        parser.read(block)
    return parser.items()


class _BoardParser:
    """Parses the blocks of one board, from its start."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._counted = 0
        self._line = 1
        self._decisions: list[BoardDecision] = []
        self._milestones: list[BoardMilestone] = []
        self._tasks: list[BoardTask] = []
        self._negotiations: list[BoardNegotiation] = []
        self._risks: list[BoardRisk] = []
        self._log: list[BoardLogEntry] = []
        self._updates: list[BoardUpdate] = []
        self._problems: list[BoardProblem] = []
        self._ids: set[tuple[EntryKind, str]] = set()

    def items(self) -> BoardItems:
        return BoardItems(
            tuple(self._decisions),
            tuple(self._milestones),
            tuple(self._tasks),
            tuple(self._negotiations),
            tuple(self._risks),
            tuple(self._log),
            tuple(self._updates),
            tuple(sorted(self._problems, key=lambda problem: problem.line)),
        )

    def read(self, block: ItemBlock) -> None:
        line = self._line_at(block.heading.start)
        if block.role == "too_long":
            self._problem(line, "too_long", block.heading.title)
        elif block.role == "update":
            self._read_update(block, line)
        else:
            source = self.data[block.start : block.end].decode()
            found = parse_list_entries(source, self._line_at(block.start)) if source.strip() else []
            if block.role == "entry":
                self._read_entry(block.heading.title, line, found)
            elif block.kind in LISTS:
                for entry in found:
                    self._read_line(block, entry)
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
        shown = words if len(words) <= _MAX_PROBLEM_CHARACTERS else words[:_MAX_PROBLEM_CHARACTERS] + "…"
        self._problems.append(BoardProblem(line, rule, shown))

    # -- lists

    def _read_line(self, block: ItemBlock, entry: ListEntry) -> None:
        if entry_fields.is_empty_value(entry.words) and not entry.more:
            return
        if block.kind == "milestones":
            self._read_milestone(entry)
        elif block.kind == "risks":
            text = _joined(strip_marks(entry.words), entry.more)
            if not entry_fields.is_placeholder(text):
                self._risks.append(BoardRisk(entry.line, text))
        else:
            self._read_log(entry, has_author=block.kind == "update_log")

    def _read_milestone(self, entry: ListEntry) -> None:
        box, after = entry.words[:3], entry.words[3:]
        text = _joined(strip_marks(after), entry.more)
        if box not in _BOXES or (after and not after[0].isspace()):
            whole = strip_marks(entry.words)
            if not entry_fields.is_placeholder_milestone(whole):
                self._problem(entry.line, "no_box", whole)
        elif not text:
            self._problem(entry.line, "no_words", entry.words)
        elif not entry_fields.is_placeholder_milestone(text):
            self._milestones.append(BoardMilestone(entry.line, text, _BOXES[box]))

    def _read_log(self, entry: ListEntry, has_author: bool) -> None:
        stamp, closed, after = entry.words.removeprefix("[").partition("]")
        whole = _joined(strip_marks(after), entry.more)
        who, text = entry_fields.split_author(whole) if has_author else ("", whole)
        # Brackets before one of these characters are the text of a link.
        if not entry.words.startswith("[") or not closed or after[:1] in ("(", "[", ":"):
            if not entry_fields.is_placeholder(entry.words):
                self._problem(entry.line, "no_time", entry.words)
            return
        if all(entry_fields.is_placeholder(each) for each in (stamp, who or text, text)):
            return
        moment = entry_fields.parse_time(stamp)
        if moment is None:
            self._problem(entry.line, "bad_time", stamp)
        if has_author and (not who or entry_fields.is_placeholder(who)):
            self._problem(entry.line, "no_author", entry.words)
        elif not text or entry_fields.is_placeholder(text):
            self._problem(entry.line, "no_words", entry.words)
        elif moment is not None:
            self._log.append(BoardLogEntry(entry.line, moment, who, text))

    def _read_outside(self, found: list[ListEntry]) -> None:
        """Report a list above the entries of a section, because its writer may have meant entries."""
        for entry in found:
            words = strip_marks(entry.words)
            if not entry_fields.is_empty_value(words) and not entry_fields.is_placeholder(words):
                self._problem(entry.line, "outside_entry", words)
                return

    # -- parts with a heading

    def _read_update(self, block: ItemBlock, line: int) -> None:
        stamp = parse_update_time(block.heading.title) or ""
        if entry_fields.is_placeholder(stamp):
            return
        moment = entry_fields.parse_time(stamp)
        if moment is None:
            self._problem(line, "bad_time", stamp)
        source = self.data[block.start : block.end]
        words, body = first_line(source) or ("", 0)
        name, who = entry_fields.split_field(strip_marks(words)) or ("", "")
        if field_name(name) != "author" or not who:
            author = FIELDS["author"][_language_of(block.heading.title)]
            self._problem(line, "missing_field", author)
        elif moment is not None:
            text = source[body:].decode().strip("\r\n").rstrip()
            self._updates.append(BoardUpdate(line, moment, who, text))

    def _read_entry(self, title: str, line: int, found: list[ListEntry]) -> None:
        named = entry_fields.parse_entry_title(title)
        fields = [field for entry in found if (field := entry_fields.parse_field(entry))]
        if named is None or entry_fields.is_placeholder(named[1]):
            if named is None or not all(entry_fields.is_placeholder(field.value) for field in fields):
                self._problem(line, "no_id", title)
            return
        if named in self._ids:
            self._problem(line, "doubled_id", named[1])
            return
        self._ids.add(named)
        kind, name = named
        form = EntryForm(line, kind, _language_of(title), fields)
        if kind == "decision":
            _add(self._decisions, parse_decision(name, form))
        elif kind == "task":
            _add(self._tasks, parse_task(name, form))
        else:
            _add(self._negotiations, parse_negotiation(name, form))
        for problem in form.problems:
            self._problem(*problem)


def _add(items: list[Item], item: Item | None) -> None:
    if item is not None:
        items.append(item)


def _joined(words: str, more: str) -> str:
    return f"{words}\n{more}".strip()


def _language_of(title: str) -> Language:
    return "en" if title[:1].isascii() else "zh"
