"""Finds the blocks of a board that contain items, by their headings. Other text is not parsed. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom_whiteboards.entry_fields import parse_entry_title
from watchroom_whiteboards.list_entries import find_newest_entries
from watchroom_whiteboards.outline import Heading, headings
from watchroom_whiteboards.vocabulary import UPDATE, SectionKind, section_kind_of

MAX_BYTES: Final = 128 * 1024
"""Maximum bytes of all parsed sections of one kind. The newest are parsed."""
MAX_BLOCKS: Final = 1000
"""Maximum number of parsed entries of one kind, and of parsed updates. The newest are parsed."""
MAX_ENTRY_BYTES: Final = 32 * 1024
"""Maximum bytes of a parsed entry."""

LISTS: Final[frozenset[SectionKind]] = frozenset({"milestones", "risks", "update_log", "execution_log"})
WITH_ENTRIES: Final[frozenset[SectionKind]] = frozenset({"decisions", "tasks", "negotiations"})
LOGS: Final[frozenset[SectionKind]] = frozenset({"update_log", "execution_log"})
_UPDATE: Final = re.compile(rf"(?:{'|'.join(UPDATE)})\s*[-–—]+\s*(?P<time>.*)", re.IGNORECASE)

Role: TypeAlias = Literal["list", "entry", "update", "too_long"]


class ItemBlock(NamedTuple):
    """The text after ``heading``, from byte ``start`` to ``end``, in a section of ``kind``.

    ``role``: a "list" is the text of a section above its entries. An "entry" and an "update" have their own
    headings. A "too_long" block is not parsed, or only partly.
    """

    role: Role
    kind: SectionKind | None
    heading: Heading
    start: int
    end: int


def find_item_blocks(data: bytes) -> list[ItemBlock]:
    """Return the blocks of the board ``data`` (UTF-8) that are to be parsed, in order."""
    groups: dict[tuple[SectionKind | None, Role], list[ItemBlock]] = defaultdict(list)
    for block in _split_blocks(data):
        # The text above the entries of a section is not an entry, so it has a separate limit.
        group = None if block.role == "update" else block.kind
        groups[group, block.role].append(block)
    chosen = [block for group in groups.values() for block in _limit_blocks(data, group)]
    return sorted(chosen, key=lambda block: block.heading.start)


def _split_blocks(data: bytes) -> list[ItemBlock]:
    """Return every block that contains items.

    Headings of sections have level 2, headings of entries level 3. Deeper headings belong to the block that
    contains them. An update ends at the next heading of a section, entry or update.
    """
    found: list[ItemBlock] = []
    kind: SectionKind | None = None
    role: Role | None = None
    heads = headings(data)
    ends = [*(head.start for head in heads[1:]), len(data)]
    for head, end in zip(heads, ends, strict=False):
        if head.level <= 2:
            kind = section_kind_of(head.title) if head.level == 2 else None
            role = "list" if kind in LISTS or kind in WITH_ENTRIES else None
        else:
            begins = _block_role(head, kind, within_update=role == "update")
            if begins is None:
                if role is not None:
                    found[-1] = found[-1]._replace(end=end)
                continue
            role = begins
        if role is not None:
            found.append(ItemBlock(role, kind, head, head.body, end))
    return found


def _block_role(head: Heading, kind: SectionKind | None, within_update: bool) -> Role | None:
    if head.level > 3:
        return None
    stamp = parse_update_time(head.title)
    if stamp is not None and (kind in LOGS or stamp[:1].isdigit()):
        return "update"
    if kind in WITH_ENTRIES and (not within_update or parse_entry_title(head.title)):
        return "entry"
    return None


def parse_update_time(title: str) -> str | None:
    """Return the text of the time in the heading ``title`` of an update, None for other headings."""
    found = _UPDATE.fullmatch(title)
    return found["time"] if found else None


def _limit_blocks(data: bytes, group: Sequence[ItemBlock]) -> list[ItemBlock]:
    """Return the newest blocks within the limits. If any were left out, one block is ``too_long``."""
    kept: list[ItemBlock] = []
    left = MAX_BYTES
    for block in reversed(group):
        size = block.end - block.start
        if block.role == "update":
            # Only the start of an update is parsed.
            size = 0
        if block.role == "entry" and size > MAX_ENTRY_BYTES:
            kept.append(block._replace(role="too_long"))
            continue
        if size <= left and len(kept) < MAX_BLOCKS:
            kept.append(block)
            left -= size
            continue
        kept.append(block._replace(role="too_long"))
        if block.role == "list" and len(kept) < MAX_BLOCKS:
            kept.append(
                block._replace(start=block.start + find_newest_entries(data[block.start : block.end], left))
            )
        break
    return kept
