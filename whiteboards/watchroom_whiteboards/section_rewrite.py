"""Rewrites a section of a board that others may have changed in the meantime. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from watchroom.model import UNCHECKED

from watchroom_whiteboards.sections import (
    BoardSection,
    find_section,
    is_duplicate,
    parse_sections,
    replace_section_body,
    section_body,
    section_path,
)


class RewrittenSection(NamedTuple):
    """A board with a rewritten section.

    - ``text``: the whole board.
    - ``path``: the section's path.
    - ``base``: the version that the text is based on. If it is not the current version, somebody else has
      changed the section.
    """

    text: str
    path: str
    base: int


def rewrite_section(
    now: bytes,
    version: int,
    board: str,
    section: str,
    content: str,
    seen: Callable[[str], int],
    text_of: Callable[[int], bytes],
) -> RewrittenSection:
    """Replace the body of a section.

    - ``now``, ``version``: the current text of the board and its version.
    - ``board``: the board's name, for errors.
    - ``section``: the section's name.
    - ``content``: the new body.
    - ``seen``: takes a section's path ("" for the whole board), and returns the version in which the writer
      read it.
    - ``text_of``: returns the text of a version.

    Raise `SectionNotFound`, `SectionAmbiguous`, `InvalidSection`.
    """
    everything = parse_sections(now)
    found = find_section(now, board, section, everything)
    path = section_path(found)
    # If several sections have the same path, it is unknown which of them was read.
    base = seen("" if is_duplicate(found, everything) else path)
    if base in (UNCHECKED, version):
        return RewrittenSection(replace_section_body(now, found, content, everything), path, base)
    before = text_of(base)
    earlier = parse_sections(before)
    then = _same(found, everything, earlier)
    if then is None:
        return RewrittenSection(replace_section_body(now, found, content, everything), path, base)
    if section_body(before, then) == section_body(now, found):
        return RewrittenSection(replace_section_body(now, found, content, everything), path, version)
    return RewrittenSection(replace_section_body(before, then, content, earlier), path, base)


def _same(found: BoardSection, now: list[BoardSection], then: list[BoardSection]) -> BoardSection | None:
    """Return the section in an earlier version; None if it did not exist or is ambiguous."""
    path = section_path(found)
    mine = [each for each in now if section_path(each) == path]
    others = [each for each in then if section_path(each) == path]
    return others[mine.index(found)] if len(mine) == len(others) else None
