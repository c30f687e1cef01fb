"""Where the few passages of a board stand that have a meaning: found by headings, the rest unread. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom_whiteboards.kinds import UPDATE, SectionKind, section_kind
from watchroom_whiteboards.outline import Heading, headings
from watchroom_whiteboards.reading import newest_entries
from watchroom_whiteboards.values import entry_title

MOST_BYTES: Final = 128 * 1024
"""So much of the sections of one kind is read."""
MOST_PARTS: Final = 1000
"""So many entries of one kind are read, and so many updates."""
MOST_BYTES_OF_ONE: Final = 32 * 1024
"""An entry longer than this is not read."""

LISTS: Final[frozenset[SectionKind]] = frozenset({"milestones", "risks", "update_log", "execution_log"})
WITH_ENTRIES: Final[frozenset[SectionKind]] = frozenset({"decisions", "tasks", "negotiations"})
LOGS: Final[frozenset[SectionKind]] = frozenset({"update_log", "execution_log"})
_UPDATE: Final = re.compile(rf"(?:{'|'.join(UPDATE)})\s*[-–—]+\s*(?P<time>.*)", re.IGNORECASE)

Role: TypeAlias = Literal["list", "entry", "update", "too_long"]


class Passage(NamedTuple):
    """What follows a heading, from byte ``start`` to ``end``. A "list" is a section's own text, an "entry"
    and an "update" have their heading; of a passage "too_long" not all is read, or nothing."""

    role: Role
    kind: SectionKind | None
    heading: Heading
    start: int
    end: int


def passages(data: bytes) -> list[Passage]:
    """The passages of a board that are to be read, in order."""
    groups: dict[tuple[SectionKind | None, Role], list[Passage]] = defaultdict(list)
    for passage in _divided(data):
        # The text above the entries of a section has its own measure: it is no entry.
        group = None if passage.role == "update" else passage.kind
        groups[group, passage.role].append(passage)
    chosen = [passage for group in groups.values() for passage in _newest(data, group)]
    return sorted(chosen, key=lambda passage: passage.heading.start)


def _divided(data: bytes) -> list[Passage]:
    """Every passage that has a meaning. A section's heading is of the second level, an entry's of the third;
    deeper ones belong to what they stand in. An update ends where something begins that is none of it."""
    found: list[Passage] = []
    kind: SectionKind | None = None
    role: Role | None = None
    heads = headings(data)
    ends = [*(head.start for head in heads[1:]), len(data)]
    for head, end in zip(heads, ends, strict=False):
        if head.level <= 2:
            kind = section_kind(head.title) if head.level == 2 else None
            role = "list" if kind in LISTS or kind in WITH_ENTRIES else None
        else:
            begins = _begins(head, kind, within_update=role == "update")
            if begins is None:
                if role is not None:
                    found[-1] = found[-1]._replace(end=end)
                continue
            role = begins
        if role is not None:
            found.append(Passage(role, kind, head, head.body, end))
    return found


def _begins(head: Heading, kind: SectionKind | None, within_update: bool) -> Role | None:
    if head.level > 3:
        return None
    stamp = update_time(head.title)
    if stamp is not None and (kind in LOGS or stamp[:1].isdigit()):
        return "update"
    if kind in WITH_ENTRIES and (not within_update or entry_title(head.title)):
        return "entry"
    return None


def update_time(title: str) -> str | None:
    """What stands in the place of the time in the heading of an update; None: it is another heading."""
    found = _UPDATE.fullmatch(title)
    return found["time"] if found else None


def _newest(data: bytes, group: Sequence[Passage]) -> list[Passage]:
    """The newest passages, as many as may be read, and one that is ``too_long`` where any were left out."""
    kept: list[Passage] = []
    left = MOST_BYTES
    for passage in reversed(group):
        size = passage.end - passage.start
        if passage.role == "update":
            # Of an update only the beginning is parsed.
            size = 0
        if passage.role == "entry" and size > MOST_BYTES_OF_ONE:
            kept.append(passage._replace(role="too_long"))
            continue
        if size <= left and len(kept) < MOST_PARTS:
            kept.append(passage)
            left -= size
            continue
        kept.append(passage._replace(role="too_long"))
        if passage.role == "list" and len(kept) < MOST_PARTS:
            kept.append(
                passage._replace(
                    start=passage.start + newest_entries(data[passage.start : passage.end], left)
                )
            )
        break
    return kept
