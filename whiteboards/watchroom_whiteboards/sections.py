"""Finds the sections of a board by their parsed headings, and changes a section without touching the others.
Pure.

A section is a heading and the text up to the next heading of the same or a higher level. Its name is its
title, with or without the marks of Markdown. A name can also contain the level (``### Title``), the parents
(``Parent > Title``) or the line (``Title (12)``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom_whiteboards.errors import InvalidSection, SectionAmbiguous, SectionNotFound
from watchroom_whiteboards.outline import Heading, closing, collapse_spaces, headings
from watchroom_whiteboards.vocabulary import is_same_heading

_MARKS: Final = re.compile(r"(#{1,6})\s+")
_ITEM: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])\s")
_AT_LINE: Final = re.compile(r"\s*\(([0-9]{1,9})\)$")
_LINE_END: Final = re.compile(r"\r\n?|\n")
_LINE_END_IN_BYTES: Final = re.compile(rb"\r\n?|\n")
_LINE_FEED: Final = re.compile(r"\r?\n")
_SEPARATOR: Final = " > "
_MAX_SHOWN: Final = 12
ENTRY_LEVEL: Final = 3
"""The level of a signed entry's heading."""

SameTitle = Callable[[str, str], bool]


class BoardSection(NamedTuple):
    """A section: its ``heading``, the byte offset of its ``end``, and the headings above it (``under``)."""

    heading: Heading
    end: int
    under: tuple[Heading, ...]


def parse_sections(data: bytes) -> list[BoardSection]:
    """Return all sections of ``data`` (UTF-8), in order. A section contains its subsections."""
    found: list[BoardSection] = []
    open_sections: list[tuple[int, Heading, tuple[Heading, ...]]] = []
    ends: dict[int, int] = {}
    marks = headings(data)
    for place, heading in enumerate(marks):
        while open_sections and open_sections[-1][1].level >= heading.level:
            ends[open_sections.pop()[0]] = heading.start
        under = tuple(each for _, each, _ in open_sections)
        open_sections.append((place, heading, under))
        found.append(BoardSection(heading, len(data), under))
    return [section._replace(end=ends.get(place, len(data))) for place, section in enumerate(found)]


def find_section(
    data: bytes, board: str, named: str, among: Sequence[BoardSection] | None = None
) -> BoardSection:
    """Return a section of ``data`` by a name such as ``Milestones``, ``### Task #1`` or ``Tasks > Task #1``.

    - ``board``: the board's name, for errors.
    - ``named``: the name of the section. An exact title is preferred to the title in the other language.
    - ``among``: the sections of ``data``, if they are already parsed.

    Raise `SectionNotFound`, `SectionAmbiguous`.
    """
    everything = parse_sections(data) if among is None else among
    title = collapse_spaces(named)
    whole = [each for each in everything if title in (each.heading.title, each.heading.written)]
    if len(whole) == 1:
        return whole[0]
    for level, path, line in _parse_section_name(title):
        starts = _bytes_of_line(data, line) if line else range(len(data) + 1)
        for agree in (str.__eq__, is_same_heading):
            found = [
                each
                for each in everything
                if each.heading.start in starts
                and level in (0, each.heading.level)
                and _matches_path(each.heading, each.under, path, agree)
            ]
            if len(found) == 1:
                return found[0]
            if found:
                raise SectionAmbiguous(section=named, board=board, candidates=_list_candidates(data, found))
    known = ", ".join(each.heading.title for each in everything[:_MAX_SHOWN]) or "-"
    more = " …" if len(everything) > _MAX_SHOWN else ""
    raise SectionNotFound(section=named, board=board, known=known + more)


def section_name(data: bytes, section: BoardSection, among: Sequence[BoardSection]) -> str:
    """Return a name by which `find_section` finds ``section``: its path, with level and line if the path is
    ambiguous. ``among``: the sections of ``data``."""
    path = section_path(section)
    with suppress(SectionNotFound, SectionAmbiguous):
        if find_section(data, "", path, among) == section:
            return path
    return _full_name(data, section)


def _full_name(data: bytes, section: BoardSection) -> str:
    return f"{'#' * section.heading.level} {section_path(section)} ({_line(data, section)})"


def is_duplicate(section: BoardSection, among: Sequence[BoardSection]) -> bool:
    """Return whether another section in ``among`` has the same path as ``section``."""
    path = section_path(section)
    return sum(section_path(each) == path for each in among) > 1


def _parse_section_name(named: str) -> Iterator[tuple[int, str, int]]:
    """Yield the possible meanings of a section's name: level (0: any), path, and line (0: any).

    Marks at the beginning can be the level, or a part of the first title. A number in parentheses at the end
    can be the line, or a part of the title.
    """
    at_line = _AT_LINE.search(named)
    texts = [(named[: at_line.start()], int(at_line[1]))] if at_line is not None else []
    for text, line in (*texts, (named, 0)):
        marks = _MARKS.match(text)
        if marks is not None:
            yield len(marks[1]), text[marks.end() :], line
        yield 0, text, line


def _line(data: bytes, section: BoardSection) -> int:
    return 1 + sum(1 for _ in _LINE_END_IN_BYTES.finditer(data, 0, section.heading.start))


def _bytes_of_line(data: bytes, number: int) -> range:
    """Return the bytes of line ``number`` of ``data``, with its line end. Empty if there are fewer lines."""
    bounds = [0, *(end.end() for end in _LINE_END_IN_BYTES.finditer(data)), len(data) + 1]
    return range(bounds[number - 1], bounds[number]) if number < len(bounds) else range(0)


def section_path(section: BoardSection) -> str:
    """Return the titles above ``section`` (without the board's title) and its own title, joined by " > "."""
    above = [heading for heading in section.under if heading.level > 1]
    return _SEPARATOR.join(heading.title for heading in (*above, section.heading))


def section_body(data: bytes, section: BoardSection) -> str:
    """Return the text of ``section`` in ``data`` without its heading and surrounding blank lines."""
    return data[section.heading.body : section.end].decode().strip("\r\n")


def section_text(data: bytes, section: BoardSection) -> str:
    """Return the text of ``section`` in ``data`` with its heading, without surrounding blank lines."""
    return data[section.heading.start : section.end].decode().strip("\r\n")


def replace_section_body(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """Return the text of ``data`` with ``text`` as the body of ``section``.

    ``among``: the sections of ``data``. Raise `InvalidSection` if ``text`` would change other sections.
    """
    check_blocks_closed(section.heading.title, text)
    changed = _splice(data, section.heading.body, section.end, text.strip("\r\n"))
    return _check_headings(data, section, changed, among)


def append_to_section(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """Return the text of ``data`` with ``text`` added at the end of ``section``.

    ``among``: the sections of ``data``. Raise `InvalidSection` if ``text`` would change other sections.
    """
    check_blocks_closed(section.heading.title, text)
    kept = close_text(data[section.heading.body : section.end])
    more = text.strip("\r\n")
    # A list item continues the list at the end of the section. A blank line would make the list loose.
    is_same_list = _ITEM.match(more) and _ITEM.match(_LINE_END.split(kept)[-1])
    gap = "\n" if is_same_list else "\n\n"
    whole = f"{kept}{gap}{more}" if kept else more
    changed = _splice(data, section.heading.body, section.end, whole)
    return _check_headings(data, section, changed, among)


def close_text(data: bytes) -> str:
    """Return the text of ``data`` without surrounding blank lines. A block left open in it is closed."""
    text = data.decode().strip("\r\n")
    end = closing(data)
    return f"{text}{_last_break(text)}{end}" if end else text


def append_entry(kept: str, entry: str) -> str:
    """Return ``kept``, a result of `close_text`, with ``entry`` appended, in the line ends of ``kept``."""
    newline = _last_break(kept)
    gap = newline * 2 if kept else ""
    return f"{kept}{gap}{_with_breaks(entry.strip(), newline)}{newline}"


def check_entry(board: str, entry: str) -> None:
    """Raise `InvalidSection` if ``entry`` at the end of ``board`` would not be a single entry."""
    check_blocks_closed(board, entry)
    if any(each.level <= ENTRY_LEVEL for each in headings(entry.encode())):
        raise InvalidSection(section=board, rule="entry_level")


def check_blocks_closed(section: str, text: str) -> None:
    """Raise `InvalidSection` if ``text`` for ``section`` leaves a block open. Such a block would swallow the
    text after it."""
    if closing(text.encode()):
        raise InvalidSection(section=section, rule="open_block")


def _check_headings(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """Return ``text``, a board in which only ``section`` differs from ``data``.

    ``among``: the sections of ``data``. Raise `InvalidSection` if headings outside of the section changed,
    or if a heading in the section has the section's level or a higher level.
    """
    before, after = [each.heading for each in among], headings(text.encode())
    start, end = section.heading.start, section.end
    above = [_level_and_title(each) for each in before if each.start <= start]
    below = [_level_and_title(each) for each in before if each.start >= end]
    found = [_level_and_title(each) for each in after]
    inner = found[len(above) : len(found) - len(below)]
    if any(level <= section.heading.level for level, _ in inner):
        raise InvalidSection(section=section.heading.title, rule="heading_level")
    if found[: len(above)] != above or found[len(above) + len(inner) :] != below:
        raise InvalidSection(section=section.heading.title, rule="breaks_out")
    return text


def _level_and_title(heading: Heading) -> tuple[int, str]:
    return heading.level, heading.title


def _splice(data: bytes, start: int, end: int, text: str) -> str:
    """Return ``data`` with ``text`` in place of the bytes from ``start`` to ``end``. A blank line after the
    heading stays, and a blank line separates the text from the next heading."""
    before, after = data[:start].decode(), data[end:].decode()
    newline = _last_break(before)
    gap = "" if before.endswith(("\n", "\r")) else newline
    words = _with_breaks(text.strip("\r\n"), newline)
    if not words:
        return f"{before}{gap}{newline}{after}" if after else f"{before}{gap}"
    if data[start:end].startswith((b"\n", b"\r")):
        gap += newline
    return f"{before}{gap}{words}{newline}" + (f"{newline}{after}" if after else "")


def _last_break(text: str) -> str:
    """Return the last line end in ``text``; a line feed if it has none."""
    at = max(text.rfind("\n"), text.rfind("\r"))
    return "\n" if at < 0 else "\r\n" if text[:at].endswith("\r") and text[at] == "\n" else text[at]


def _with_breaks(text: str, newline: str) -> str:
    """Return ``text`` with ``newline`` as the end of each line."""
    return (_LINE_END if newline == "\r" else _LINE_FEED).sub(newline, text)


def _matches_path(heading: Heading, under: Sequence[Heading], path: str, agree: SameTitle) -> bool:
    """Return whether ``path`` matches ``heading``: its title, or some of the titles above it and its own
    title.

    ``under``: the headings above it. Titles can contain the separator.
    """
    if _matches_title(heading, path, agree):
        return True
    at = path.rfind(_SEPARATOR)
    while at >= 0:
        if _matches_title(heading, path[at + len(_SEPARATOR) :].strip(), agree) and any(
            _matches_path(each, under[:depth], path[:at].strip(), agree) for depth, each in enumerate(under)
        ):
            return True
        at = path.rfind(_SEPARATOR, 0, at)
    return False


def _matches_title(heading: Heading, named: str, agree: SameTitle) -> bool:
    marks = _MARKS.match(named)
    if marks is not None and heading.level == len(marks[1]):
        return _has_title(heading, named[marks.end() :], agree)
    return _has_title(heading, named, agree)


def _has_title(heading: Heading, named: str, agree: SameTitle) -> bool:
    return named == heading.written or agree(heading.title, named)


def _list_candidates(data: bytes, found: list[BoardSection]) -> str:
    return "; ".join(_full_name(data, each) for each in found[:_MAX_SHOWN])
