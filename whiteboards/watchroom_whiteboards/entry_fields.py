"""Parses the fields of an entry, and recognizes the placeholders of the template. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from watchroom_whiteboards.list_entries import ListEntry, strip_marks
from watchroom_whiteboards.vocabulary import (
    DECISION_STATUSES,
    NOTHING,
    TASK_STATUSES,
    EntryKind,
    FieldName,
    entry_kind,
    field_name,
    normalize,
)

_PLACEHOLDER: Final = re.compile(r"\{[^{}]+\}")
_MAX_PLACEHOLDER_CHARACTERS: Final = 200
"""Maximum characters of a placeholder, because its patterns are slow for long texts."""
_NUMBERED: Final = re.compile(r"(?:里程碑|milestone)\s*\w*\s*[:：]", re.IGNORECASE)
_REACHED: Final = re.compile(r"\((?:已完成|done)\)$", re.IGNORECASE)
_TITLE: Final = re.compile(r"(?P<word>[^#＃]+?)\s*[#＃]\s*(?P<id>\w(?:[\w.-]*\w)?|\{[^{}]*\})(?![\w])")
_COLON: Final = re.compile("[:：]")
_AUTHOR_ENDS: Final = re.compile(r":(?=\s|$)|：")
_BETWEEN: Final = re.compile(r"[,，、;；\n]")
_STATUSES: Final = frozenset({*DECISION_STATUSES, *TASK_STATUSES})


class EntryField(NamedTuple):
    """A field of an entry. ``word`` is its name as written on the board."""

    line: int
    name: FieldName
    word: str
    value: str


def is_placeholder(value: str) -> bool:
    """Return whether ``value`` is a placeholder: ``{description}``, or the list of all statuses."""
    choices = [normalize(choice) for choice in value.split("/")]
    return bool(_PLACEHOLDER.fullmatch(value.removesuffix("%").strip())) or (
        len(choices) > 1 and _STATUSES.issuperset(choices)
    )


def is_placeholder_milestone(text: str) -> bool:
    """Return whether ``text`` is a milestone of the template."""
    if len(text) > _MAX_PLACEHOLDER_CHARACTERS:
        return False
    return is_placeholder(_REACHED.sub("", _NUMBERED.sub("", text, count=1)).strip())


def is_empty_value(value: str) -> bool:
    """Return whether ``value`` is empty or means "none" in either language."""
    return normalize(value) in NOTHING


def parse_entry_title(title: str) -> tuple[EntryKind, str] | None:
    """Return the kind and the id in a heading, e.g. ``Decision #7`` or ``决策 #7：标题``.

    Return None if ``title`` is not the heading of an entry.
    """
    found = _TITLE.match(title)
    kind = entry_kind(found["word"]) if found else None
    return (kind, found["id"]) if found and kind else None


def split_field(words: str) -> tuple[str, str] | None:
    """Split ``words`` without marks, e.g. ``Time: …``, into name and value. Return None without a colon."""
    found = _COLON.search(words)
    return (words[: found.start()].strip(), words[found.end() :].strip()) if found else None


def parse_field(entry: ListEntry) -> EntryField | None:
    """Return the field in the list entry ``entry``, None if its name is unknown."""
    parts = split_field(strip_marks(entry.words))
    name = field_name(parts[0]) if parts else None
    if not parts or not name:
        return None
    return EntryField(entry.line, name, parts[0], "\n".join(filter(None, (parts[1], entry.more))).strip())


def parse_time(value: str) -> datetime | None:
    """Parse a time in ISO 8601 with a time zone. Return None if ``value`` is not such a time."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None and "T" in value else None


def parse_progress(value: str) -> int | None:
    """Parse a percentage from 0 to 100. Return None if ``value`` is not a percentage."""
    digits = value.removesuffix("%").removesuffix("％").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 3):
        return None
    return int(digits) if int(digits) <= 100 else None


Status = TypeVar("Status")


def parse_status(value: str, known: Mapping[str, Status]) -> Status | None:
    """Return the status of ``value`` in the table ``known`` (normalized word → status), None if it is
    unknown."""
    return known.get(normalize(value))


def parse_names(value: str) -> tuple[str, ...]:
    """Return the names in ``value``, separated by commas, semicolons or line ends."""
    return tuple(name for part in _BETWEEN.split(value) if not is_empty_value(name := part.strip()))


def split_author(words: str) -> tuple[str, str]:
    """Split ``words``, e.g. ``alice: text`` or ``human:NAME: text``, into author and text.

    The author is empty if the first line has none.
    """
    found = _AUTHOR_ENDS.search(words.partition("\n")[0])
    return (words[: found.start()].strip(), words[found.end() :].strip()) if found else ("", words)
