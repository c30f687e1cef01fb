"""Sections of a board: found by their parsed headings, changed without touching what is around. Pure.

A section is a heading with all that follows up to the next heading of its level or a higher one. It is named
by its title; ``### Title`` also by its level, ``Parent > Title`` by where it stands, ``Title (12)`` by its
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom_whiteboards.errors import InvalidSection, SectionAmbiguous, SectionNotFound
from watchroom_whiteboards.kinds import same_heading
from watchroom_whiteboards.outline import Heading, closing, headings

_MARKS: Final = re.compile(r"(#{1,6})\s+")
_ITEM: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])\s")
_AT_LINE: Final = re.compile(r"\s*\(([0-9]{1,9})\)$")
_SHOWN: Final = 12
ENTRY_LEVEL: Final = 3
"""The level of the heading of a signed entry."""

SameTitle = Callable[[str, str], bool]


class Section(NamedTuple):
    """A section's heading, where its body ends (in bytes from the start of the text), and the headings that
    it stands under."""

    heading: Heading
    end: int
    under: tuple[Heading, ...]


def sections(data: bytes) -> list[Section]:
    """All sections of a text (UTF-8), in order; those of a section lie within it."""
    found: list[Section] = []
    open_ones: list[tuple[int, Heading, tuple[Heading, ...]]] = []
    ends: dict[int, int] = {}
    marks = headings(data)
    for place, heading in enumerate(marks):
        while open_ones and open_ones[-1][1].level >= heading.level:
            ends[open_ones.pop()[0]] = heading.start
        under = tuple(each for _, each, _ in open_ones)
        open_ones.append((place, heading, under))
        found.append(Section(heading, len(data), under))
    return [section._replace(end=ends.get(place, len(data))) for place, section in enumerate(found)]


def find(data: bytes, board: str, named: str, among: Sequence[Section] | None = None) -> Section:
    """The section of that name, of all (``among``, as `sections` gives them). Titles that mean the same in
    the other language count, too, but one that is spelled so goes before. Raises `SectionNotFound`,
    `SectionAmbiguous`."""
    everything = sections(data) if among is None else among
    whole = [each for each in everything if each.heading.title == named.strip()]
    if len(whole) == 1:
        return whole[0]
    level, above, last, line = _read(named)
    for agree in (str.__eq__, same_heading):
        found = [
            each
            for each in everything
            if level in (0, each.heading.level)
            and agree(each.heading.title, last)
            and _stands_under(each.under, above, agree)
            and line in (0, _line(data, each))
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise SectionAmbiguous(section=named, board=board, candidates=_told(data, found))
    known = ", ".join(each.heading.title for each in everything[:_SHOWN]) or "-"
    more = " …" if len(everything) > _SHOWN else ""
    raise SectionNotFound(section=named, board=board, known=known + more)


def name_of(data: bytes, section: Section, among: Sequence[Section]) -> str:
    """A name by which `find` finds just this section: its path, with level and line where that needs it."""
    path = path_of(section)
    is_plain = not is_twin(section, among) and _read(path) == (0, *_titles(section), 0)
    return path if is_plain else _in_full(data, section)


def _in_full(data: bytes, section: Section) -> str:
    return f"{'#' * section.heading.level} {path_of(section)} ({_line(data, section)})"


def is_twin(section: Section, among: Sequence[Section]) -> bool:
    """Whether another section has the same path."""
    path = path_of(section)
    return sum(path_of(each) == path for each in among) > 1


def _titles(section: Section) -> tuple[list[str], str]:
    above = [heading.title for heading in section.under if heading.level > 1]
    return above, section.heading.title


def _read(named: str) -> tuple[int, list[str], str, int]:
    """What a section's name says: its level (0: any), titles above, its own, and its line (0: any)."""
    level, line = 0, 0
    text = named.strip()
    marks = _MARKS.match(text)
    if marks is not None:
        level, text = len(marks[1]), text[marks.end() :]
    at_line = _AT_LINE.search(text)
    if at_line is not None:
        line, text = int(at_line[1]), text[: at_line.start()]
    *above, last = [each.strip() for each in text.split(" > ")]
    inner = _MARKS.match(last)
    if inner is not None and above:
        level, last = len(inner[1]), last[inner.end() :]
    return level, above, last, line


def _line(data: bytes, section: Section) -> int:
    return data.count(b"\n", 0, section.heading.start) + 1


def path_of(section: Section) -> str:
    """Where a section stands: the titles above it, but not that of the whole board, and its own."""
    above = [heading for heading in section.under if heading.level > 1]
    return " > ".join(heading.title for heading in (*above, section.heading))


def body(data: bytes, section: Section) -> str:
    """What stands in a section, without its heading and the empty lines around."""
    return data[section.heading.body : section.end].decode().strip("\r\n")


def whole(data: bytes, section: Section) -> str:
    """A section with its heading, without the empty lines around."""
    return data[section.heading.start : section.end].decode().strip("\r\n")


def with_body(data: bytes, section: Section, text: str) -> str:
    """The text with another body in the section. Raises `InvalidSection` if it would not stay within."""
    check_open(section.heading.title, text)
    return _checked(data, section, _spliced(data, section.heading.body, section.end, text.strip("\r\n")))


def with_more(data: bytes, section: Section, text: str) -> str:
    """The text with more at the end of the section. Raises `InvalidSection` if it would not stay within."""
    check_open(section.heading.title, text)
    kept = closed(data[section.heading.body : section.end])
    more = text.strip("\r\n")
    # An item goes on with the list that ends the section: an empty line would loosen it.
    goes_on = _ITEM.match(more) and _ITEM.match(kept.rpartition("\n")[2])
    gap = "\n" if goes_on else "\n\n"
    whole = f"{kept}{gap}{more}" if kept else more
    return _checked(data, section, _spliced(data, section.heading.body, section.end, whole))


def closed(data: bytes) -> str:
    """A text without the empty lines around, and with an end to the block that stands open."""
    text = data.decode().strip("\r\n")
    end = closing(data)
    return f"{text}\n{end}" if end else text


def with_entry(kept: str, entry: str) -> str:
    """A `closed` text with an entry at its end."""
    return f"{kept}\n\n{entry.strip()}\n" if kept else f"{entry.strip()}\n"


def check_entry(board: str, entry: str) -> None:
    """Raises `InvalidSection` if an entry would not stay within itself at the end of a board."""
    check_open(board, entry)
    if any(each.level <= ENTRY_LEVEL for each in headings(entry.encode())):
        raise InvalidSection(section=board, rule="entry_level")


def check_open(section: str, text: str) -> None:
    """Raises `InvalidSection` if what follows the text would stand in a block that it leaves open."""
    if closing(text.encode()):
        raise InvalidSection(section=section, rule="open_block")


def _checked(data: bytes, section: Section, text: str) -> str:
    """``text``, in which only what is in the section differs from ``data``. Raises `InvalidSection` if the
    headings around are others by it, or one within is as high as its own."""
    before, after = headings(data), headings(text.encode())
    start, end = section.heading.start, section.end
    above = [_told_of(each) for each in before if each.start <= start]
    below = [_told_of(each) for each in before if each.start >= end]
    found = [_told_of(each) for each in after]
    inner = found[len(above) : len(found) - len(below)]
    if any(level <= section.heading.level for level, _ in inner):
        raise InvalidSection(section=section.heading.title, rule="heading_level")
    if found[: len(above)] != above or found[len(above) + len(inner) :] != below:
        raise InvalidSection(section=section.heading.title, rule="breaks_out")
    return text


def _told_of(heading: Heading) -> tuple[int, str]:
    return heading.level, heading.title


def _spliced(data: bytes, start: int, end: int, text: str) -> str:
    """``data`` with ``text`` from ``start`` to ``end``; the empty line after the heading stays, if there is
    one, and one comes before what follows."""
    before, after = data[:start].decode(), data[end:].decode()
    newline = "\r\n" if b"\r\n" in data[: end + 2] else "\n"
    gap = "" if before.endswith(("\n", "\r")) else newline
    words = newline.join(text.strip("\r\n").replace("\r\n", "\n").split("\n"))
    if not words:
        return f"{before}{gap}{newline}{after}" if after else f"{before}{gap}"
    if data[start:end].startswith((b"\n", b"\r")):
        gap += newline
    return f"{before}{gap}{words}{newline}" + (f"{newline}{after}" if after else "")


def _stands_under(under: tuple[Heading, ...], above: list[str], agree: SameTitle) -> bool:
    """Whether the headings named in ``above`` are among those above, in that order."""
    rest = iter(under)
    return all(any(_is_named(each, named, agree) for each in rest) for named in above)


def _is_named(heading: Heading, named: str, agree: SameTitle) -> bool:
    marks = _MARKS.match(named)
    if marks is not None:
        return heading.level == len(marks[1]) and agree(heading.title, named[marks.end() :].strip())
    return agree(heading.title, named)


def _told(data: bytes, found: list[Section]) -> str:
    return "; ".join(_in_full(data, each) for each in found[:_SHOWN])
