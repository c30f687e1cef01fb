"""How a section that somebody rewrites meets what others have written meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from watchroom.model import UNCHECKED

from watchroom_whiteboards.sections import Section, body, find, is_twin, path_of, sections, with_body


class Revised(NamedTuple):
    """The whole text with the section rewritten, where the section stands, and the version that the text
    starts from: if that is not the current one, somebody has changed the section."""

    text: str
    path: str
    base: int


def revised(
    now: bytes,
    version: int,
    board: str,
    section: str,
    content: str,
    seen: Callable[[str], int],
    text_of: Callable[[int], bytes],
) -> Revised:
    """``now`` (the text of ``version``) with ``content`` in the section of that name. ``seen`` tells in which
    version the writer saw a section, ``text_of`` gives a version. Raises `SectionNotFound`,
    `SectionAmbiguous`, `InvalidSection`."""
    everything = sections(now)
    found = find(now, board, section, everything)
    path = path_of(found)
    # Of several sections of one path, it cannot be told which of them the writer has seen by itself.
    base = seen("" if is_twin(found, everything) else path)
    if base in (UNCHECKED, version):
        return Revised(with_body(now, found, content), path, base)
    before = text_of(base)
    then = _same(found, everything, sections(before))
    if then is None:
        return Revised(with_body(now, found, content), path, base)
    if body(before, then) == body(now, found):
        return Revised(with_body(now, found, content), path, version)
    return Revised(with_body(before, then, content), path, base)


def _same(found: Section, now: list[Section], then: list[Section]) -> Section | None:
    """The section in an earlier version; None if it was not there, or it cannot be told which it was."""
    path = path_of(found)
    mine = [each for each in now if path_of(each) == path]
    others = [each for each in then if path_of(each) == path]
    return others[mine.index(found)] if len(mine) == len(others) else None
