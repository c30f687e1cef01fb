"""What the fields of an entry hold, and whether it still is the template's placeholder. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from watchroom_whiteboards.kinds import (
    DECISION_STATUSES,
    NOTHING,
    TASK_STATUSES,
    EntryKind,
    FieldName,
    entry_kind,
    field_name,
    folded,
)
from watchroom_whiteboards.reading import Entry, without_marks

_PLACEHOLDER: Final = re.compile(r"\{[^{}]+\}")
_LONGEST_PLACEHOLDER: Final = 200
"""The patterns for them take long on long texts."""
_NUMBERED: Final = re.compile(r"(?:里程碑|milestone)\s*\w*\s*[:：]", re.IGNORECASE)
_REACHED: Final = re.compile(r"\((?:已完成|done)\)$", re.IGNORECASE)
_TITLE: Final = re.compile(r"(?P<word>[^#＃]+?)\s*[#＃]\s*(?P<id>\w(?:[\w.-]*\w)?|\{[^{}]*\})(?![\w])")
_COLON: Final = re.compile("[:：]")
_AUTHOR_ENDS: Final = re.compile(r":(?=\s|$)|：")
_BETWEEN: Final = re.compile(r"[,，、;；\n]")
_STATUSES: Final = frozenset({*DECISION_STATUSES, *TASK_STATUSES})


class Field(NamedTuple):
    """A field of an entry. ``word`` is its name as written there."""

    line: int
    name: FieldName
    word: str
    value: str


def is_placeholder(value: str) -> bool:
    """Whether the value still is the template's: ``{description}``, or all the statuses to choose from."""
    choices = [folded(choice) for choice in value.split("/")]
    return bool(_PLACEHOLDER.fullmatch(value.removesuffix("%").strip())) or (
        len(choices) > 1 and _STATUSES.issuperset(choices)
    )


def is_placeholder_milestone(text: str) -> bool:
    if len(text) > _LONGEST_PLACEHOLDER:
        return False
    return is_placeholder(_REACHED.sub("", _NUMBERED.sub("", text, count=1)).strip())


def is_nothing(value: str) -> bool:
    return folded(value) in NOTHING


def entry_title(title: str) -> tuple[EntryKind, str] | None:
    """Kind and id in the heading of an entry, such as ``Decision #7`` or ``决策 #7：标题``."""
    found = _TITLE.match(title)
    kind = entry_kind(found["word"]) if found else None
    return (kind, found["id"]) if found and kind else None


def split_field(words: str) -> tuple[str, str] | None:
    """A line such as ``**Time**: …`` without its marks, as the name and the value. None if it is no field."""
    found = _COLON.search(words)
    return (words[: found.start()].strip(), words[found.end() :].strip()) if found else None


def field(entry: Entry) -> Field | None:
    """The field that an entry of a list is; None: it is none of ours."""
    parts = split_field(without_marks(entry.words))
    name = field_name(parts[0]) if parts else None
    if not parts or not name:
        return None
    return Field(entry.line, name, parts[0], "\n".join(filter(None, (parts[1], entry.more))).strip())


def time(value: str) -> datetime | None:
    """The moment that a text of ISO 8601 with a zone names."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None and "T" in value else None


def progress(value: str) -> int | None:
    digits = value.removesuffix("%").removesuffix("％").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 3):
        return None
    return int(digits) if int(digits) <= 100 else None


Status = TypeVar("Status")


def status(value: str, known: Mapping[str, Status]) -> Status | None:
    return known.get(folded(value))


def names(value: str) -> tuple[str, ...]:
    """Those whom a field lists, between commas, semicolons or on lines of their own."""
    return tuple(name for part in _BETWEEN.split(value) if not is_nothing(name := part.strip()))


def split_author(words: str) -> tuple[str, str]:
    """``alice: text`` as the author and the text. The author is empty if the first line names none; that of
    a person is ``human:NAME``."""
    found = _AUTHOR_ENDS.search(words.partition("\n")[0])
    return (words[: found.start()].strip(), words[found.end() :].strip()) if found else ("", words)
