"""Sections of a board: found by their parsed headings, changed without touching what is around. Pure.

A section is a heading with all that follows up to the next heading of its level or a higher one. It is named
by its title; ``### Title`` also by its level, ``Parent > Title`` by where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom_whiteboards.errors import InvalidSection, SectionAmbiguous, SectionNotFound
from watchroom_whiteboards.outline import Heading, closing, headings

_MARKS: Final = re.compile(r"(#{1,6})\s+")
_ITEM: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])\s")
_SHOWN: Final = 12

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


def find(data: bytes, board: str, named: str, same: SameTitle) -> Section:
    """The section of that name; ``same`` says whether two titles mean the same. An exact title goes before
    one that means the same. Raises `SectionNotFound`, `SectionAmbiguous`."""
    everything = sections(data)
    *above, last = [each.strip() for each in named.split(" > ")]
    for agree in (str.__eq__, same):
        found = [
            each
            for each in everything
            if _is_named(each.heading, last, agree) and _stands_under(each.under, above, agree)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise SectionAmbiguous(section=named, board=board, candidates=_told(data, found))
    known = ", ".join(each.heading.title for each in everything[:_SHOWN]) or "-"
    raise SectionNotFound(
        section=named, board=board, known=known + (" …" if len(everything) > _SHOWN else "")
    )


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
    _check(section, text)
    return _spliced(data, section.heading.body, section.end, text.strip("\r\n"))


def with_more(data: bytes, section: Section, text: str) -> str:
    """The text with more at the end of the section. Raises `InvalidSection` if it would not stay within."""
    _check(section, text)
    kept = closed(data[section.heading.body : section.end])
    more = text.strip("\r\n")
    # An item goes on with the list that ends the section: an empty line would loosen it.
    goes_on = _ITEM.match(more) and _ITEM.match(kept.rpartition("\n")[2])
    gap = "\n" if goes_on else "\n\n"
    return _spliced(data, section.heading.body, section.end, f"{kept}{gap}{more}" if kept else more)


def closed(data: bytes) -> str:
    """A text without the empty lines around, and with an end to the block that stands open."""
    text = data.decode().strip("\r\n")
    end = closing(data)
    return f"{text}\n{end}" if end else text


def with_entry(kept: str, entry: str) -> str:
    """A `closed` text with an entry at its end."""
    return f"{kept}\n\n{entry.strip()}\n" if kept else f"{entry.strip()}\n"


def check_entry(section: str, entry: str) -> None:
    """Raises `InvalidSection` if what follows the entry would stand in a block that it leaves open."""
    if closing(entry.encode()):
        raise InvalidSection(section=section, rule="open_block")


def _check(section: Section, text: str) -> None:
    heading = section.heading
    check_entry(heading.title, text)
    for each in headings(text.encode()):
        if each.level <= heading.level:
            raise InvalidSection(section=heading.title, rule="heading_level")


def _spliced(data: bytes, start: int, end: int, text: str) -> str:
    """``data`` with ``text`` from ``start`` to ``end``; the empty line after the heading stays, if there is
    one, and one comes before what follows."""
    before, after = data[:start].decode(), data[end:].decode()
    gap = "" if before.endswith(("\n", "\r")) else "\n"
    if data[start:end].startswith((b"\n", b"\r")):
        gap += "\n"
    words = text.strip("\r\n")
    middle = f"{gap}{words}\n" if words else gap
    return f"{before}{middle}" + (f"\n{after}" if after else "")


def _is_named(heading: Heading, named: str, agree: SameTitle) -> bool:
    marks = _MARKS.match(named)
    if marks is not None:
        return heading.level == len(marks[1]) and agree(heading.title, named[marks.end() :].strip())
    return agree(heading.title, named)


def _stands_under(under: tuple[Heading, ...], above: list[str], agree: SameTitle) -> bool:
    """Whether the headings named in ``above`` are among those above, in that order."""
    rest = iter(under)
    return all(any(_is_named(each, named, agree) for each in rest) for named in above)


def _told(data: bytes, found: list[Section]) -> str:
    told = []
    for each in found[:_SHOWN]:
        line = data.count(b"\n", 0, each.heading.start) + 1
        told.append(f"{'#' * each.heading.level} {path_of(each)} ({line})")
    return "; ".join(told)
