"""Find the sections of a board by their parsed headings, and change one without touching the others. Pure.

A section is a heading with all that follows up to the next heading of its level or a higher one. It is named
by its title, with or without the marks of Markdown; ``### Title`` also by its level, ``Parent > Title`` by
its parents, ``Title (12)`` by its line.
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
_LINE_FEED: Final = re.compile(r"\r?\n")
_SEPARATOR: Final = " > "
_SHOWN: Final = 12
ENTRY_LEVEL: Final = 3
"""The level of the heading of a signed entry."""

SameTitle = Callable[[str, str], bool]


class BoardSection(NamedTuple):
    """A section: its ``heading``, the byte offset of its ``end``, and the headings that it is ``under``."""

    heading: Heading
    end: int
    under: tuple[Heading, ...]


def parse_sections(data: bytes) -> list[BoardSection]:
    """All sections of ``data`` (UTF-8), in order; subsections follow their section and lie within it."""
    found: list[BoardSection] = []
    open_ones: list[tuple[int, Heading, tuple[Heading, ...]]] = []
    ends: dict[int, int] = {}
    marks = headings(data)
    for place, heading in enumerate(marks):
        while open_ones and open_ones[-1][1].level >= heading.level:
            ends[open_ones.pop()[0]] = heading.start
        under = tuple(each for _, each, _ in open_ones)
        open_ones.append((place, heading, under))
        found.append(BoardSection(heading, len(data), under))
    return [section._replace(end=ends.get(place, len(data))) for place, section in enumerate(found)]


def find_section(
    data: bytes, board: str, named: str, among: Sequence[BoardSection] | None = None
) -> BoardSection:
    """The section of ``data`` that ``named`` names, e.g. ``Milestones``, ``### Task #1`` or ``Tasks > Task
    #1``.

    ``board`` is the board's name, for errors; ``among`` are the sections of ``data`` if they were parsed
    before. A title in the other language counts too, after one spelled the same. Raises `SectionNotFound`,
    `SectionAmbiguous`.
    """
    everything = parse_sections(data) if among is None else among
    title = collapse_spaces(named)
    whole = [each for each in everything if title in (each.heading.title, each.heading.written)]
    if len(whole) == 1:
        return whole[0]
    for level, path, line in _parse_section_name(title):
        for agree in (str.__eq__, is_same_heading):
            found = [
                each
                for each in everything
                if level in (0, each.heading.level)
                and _matches_path(each.heading, each.under, path, agree)
                and line in (0, _line(data, each))
            ]
            if len(found) == 1:
                return found[0]
            if found:
                raise SectionAmbiguous(section=named, board=board, candidates=_list_candidates(data, found))
    known = ", ".join(each.heading.title for each in everything[:_SHOWN]) or "-"
    more = " …" if len(everything) > _SHOWN else ""
    raise SectionNotFound(section=named, board=board, known=known + more)


def section_name(data: bytes, section: BoardSection, among: Sequence[BoardSection]) -> str:
    """A name by which `find_section` finds just ``section`` among the sections ``among`` of ``data``.

    That is its path, with level and line where the path alone would not do.
    """
    path = section_path(section)
    with suppress(SectionNotFound, SectionAmbiguous):
        if find_section(data, "", path, among) == section:
            return path
    return _in_full(data, section)


def _in_full(data: bytes, section: BoardSection) -> str:
    return f"{'#' * section.heading.level} {section_path(section)} ({_line(data, section)})"


def is_duplicate(section: BoardSection, among: Sequence[BoardSection]) -> bool:
    """Whether another section of ``among`` has the same path as ``section``."""
    path = section_path(section)
    return sum(section_path(each) == path for each in among) > 1


def _parse_section_name(named: str) -> Iterator[tuple[int, str, int]]:
    """What a section's name can mean: its level (0: any), its path, and its line (0: any).

    Marks at the beginning give the level, or belong to the first title of the path; a number in parentheses
    at the end is the line, or belongs to the title.
    """
    at_line = _AT_LINE.search(named)
    texts = [(named[: at_line.start()], int(at_line[1]))] if at_line is not None else []
    for text, line in (*texts, (named, 0)):
        marks = _MARKS.match(text)
        if marks is not None:
            yield len(marks[1]), text[marks.end() :], line
        yield 0, text, line


def _line(data: bytes, section: BoardSection) -> int:
    return len(_LINE_END.split(data[: section.heading.start].decode()))


def section_path(section: BoardSection) -> str:
    """The titles above ``section``, without that of the whole board, and its own, joined by " > "."""
    above = [heading for heading in section.under if heading.level > 1]
    return _SEPARATOR.join(heading.title for heading in (*above, section.heading))


def section_body(data: bytes, section: BoardSection) -> str:
    """The text of ``section`` in ``data`` without its heading and the blank lines around."""
    return data[section.heading.body : section.end].decode().strip("\r\n")


def section_text(data: bytes, section: BoardSection) -> str:
    """The text of ``section`` in ``data`` with its heading, without the blank lines around."""
    return data[section.heading.start : section.end].decode().strip("\r\n")


def replace_section_body(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """``data`` as text, with ``text`` as the body of ``section``.

    ``among`` are the sections of ``data``. Raises `InvalidSection` if ``text`` would not stay within the
    section.
    """
    check_blocks_closed(section.heading.title, text)
    changed = _splice(data, section.heading.body, section.end, text.strip("\r\n"))
    return _check_headings(data, section, changed, among)


def append_to_section(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """``data`` as text, with ``text`` added at the end of ``section``.

    ``among`` are the sections of ``data``. Raises `InvalidSection` if ``text`` would not stay within the
    section.
    """
    check_blocks_closed(section.heading.title, text)
    kept = close_text(data[section.heading.body : section.end])
    more = text.strip("\r\n")
    # An item goes on with the list that ends the section: an empty line would loosen it.
    goes_on = _ITEM.match(more) and _ITEM.match(_LINE_END.split(kept)[-1])
    gap = "\n" if goes_on else "\n\n"
    whole = f"{kept}{gap}{more}" if kept else more
    changed = _splice(data, section.heading.body, section.end, whole)
    return _check_headings(data, section, changed, among)


def close_text(data: bytes) -> str:
    """``data`` as text without the blank lines around, and with an end to the block left open in it."""
    text = data.decode().strip("\r\n")
    end = closing(data)
    return f"{text}{_last_break(text)}{end}" if end else text


def append_entry(kept: str, entry: str) -> str:
    """``kept``, as `close_text` returns it, with ``entry`` at its end, in the line ends of ``kept``."""
    newline = _last_break(kept)
    gap = newline * 2 if kept else ""
    return f"{kept}{gap}{_with_breaks(entry.strip(), newline)}{newline}"


def check_entry(board: str, entry: str) -> None:
    """Raise `InvalidSection` if ``entry`` would not stay within itself at the end of ``board``."""
    check_blocks_closed(board, entry)
    if any(each.level <= ENTRY_LEVEL for each in headings(entry.encode())):
        raise InvalidSection(section=board, rule="entry_level")


def check_blocks_closed(section: str, text: str) -> None:
    """Raise `InvalidSection` if ``text`` for ``section`` leaves a block open that would take in what
    follows."""
    if closing(text.encode()):
        raise InvalidSection(section=section, rule="open_block")


def _check_headings(data: bytes, section: BoardSection, text: str, among: Sequence[BoardSection]) -> str:
    """``text``, in which only what is in the section differs from ``data``, whose sections are ``among``.
    Raises `InvalidSection` if the headings around are others by it, or one within is as high as its own."""
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
    """``data`` with ``text`` from ``start`` to ``end``; the empty line after the heading stays, if there is
    one, and one comes before what follows."""
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
    """The last line end in ``text``, a line feed if it has none."""
    at = max(text.rfind("\n"), text.rfind("\r"))
    return "\n" if at < 0 else "\r\n" if text[:at].endswith("\r") and text[at] == "\n" else text[at]


def _with_breaks(text: str, newline: str) -> str:
    """``text`` with ``newline`` as the end of each line."""
    return (_LINE_END if newline == "\r" else _LINE_FEED).sub(newline, text)


def _matches_path(heading: Heading, under: Sequence[Heading], path: str, agree: SameTitle) -> bool:
    """Whether ``path`` names ``heading``, which is ``under`` others: by its title, or by some of the titles
    above and its own. Titles may contain what separates them."""
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
    return "; ".join(_in_full(data, each) for each in found[:_SHOWN])
