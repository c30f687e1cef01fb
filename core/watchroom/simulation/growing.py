"""How a text grows: pure functions from a document's text to its next one. No text outgrows `LONGEST`."""

from __future__ import annotations

from calendar import month_name
from random import Random
from typing import Final, NamedTuple

from watchroom.simulation.material import Document, Filling, Material, Section

LONGEST: Final = 190
_OPEN_TASK: Final = "- [ ] "
_DONE_TASK: Final = "- [x] "
_MONTHS: Final = tuple(month_name)


class Change(NamedTuple):
    """A next text, and the message that goes with it."""

    content: str
    message: str


class Author(NamedTuple):
    """Who changes a text: the role decides which sections, the generator which words."""

    role: str
    rng: Random
    material: Material
    team: tuple[str, ...] = ()

    def filling(self, **given: object) -> Filling:
        if self.team and "role" not in given:
            given["role"] = self.rng.choice(self.team)
        return self.material.filling(self.rng, **given)


def start(document: Document, author: Author) -> Change:
    """A document's first text: a few entries in the sections that are the author's."""
    lines = document.title.split("\n") if document.title else []
    own = document.sections_for(author.role)
    for section in document.sections:
        lines += _opening(section)
        if section in own:
            for _ in range(author.rng.randint(1, 2)):
                _insert(lines, document, section, author.filling().one_of(section.lines))
    return Change(_text(document, lines), document.summary)


def grow(document: Document, text: str, author: Author) -> Change:
    """Add to a section, correct a line of it, or condense it where it has grown long."""
    lines = text.split("\n")
    section = author.rng.choice(document.sections_for(author.role) or document.sections)
    if section.heading not in lines:
        lines = [*text.rstrip("\n").split("\n"), *_opening(section)]
    entries = _entries(lines, document, section)
    if len(entries) >= section.most or len(lines) > LONGEST:
        return _condense(lines, document, _longest(lines, document, section), author)
    roll = author.rng.random()
    if section.prefix == "- [" and roll < 0.4 and _tick(lines, entries, author.rng):
        return Change(_text(document, lines), author.filling().one_of(author.material.said.tick))
    if entries and roll < 0.25:
        return _correct(lines, document, section, author.rng.choice(entries), author)
    return _add(lines, document, section, author)


def note_down(document: Document, text: str, line: str, message: str, author: Author) -> Change:
    """Add a given line to the first section of a note."""
    lines = text.split("\n")
    section = document.sections[0]
    if section.heading not in lines or len(_entries(lines, document, section)) >= section.most:
        return grow(document, text, author)
    _insert(lines, document, section, line)
    return Change(_text(document, lines), message)


def _add(lines: list[str], document: Document, section: Section, author: Author) -> Change:
    first = author.filling()
    message = ""
    for filling in (first, *(author.filling() for _ in range(author.rng.choice((0, 0, 1, 2))))):
        line = filling.one_of(section.lines)
        if line not in lines:
            _insert(lines, document, section, line)
            message = message or filling.one_of(section.messages)
    return Change(_text(document, lines), message or first.one_of(section.messages))


def _correct(lines: list[str], document: Document, section: Section, at: int, author: Author) -> Change:
    filling = author.filling(heading=_heading(section))
    line = filling.one_of(section.lines)
    del lines[at]
    _insert(lines, document, section, line, at)
    said = author.material.said
    return Change(
        _text(document, lines), filling.one_of(said.correct_zh if section.language else said.correct)
    )


def _condense(lines: list[str], document: Document, section: Section, author: Author) -> Change:
    """Put the older half of a section's entries into one line, or leave it to the history."""
    entries = _entries(lines, document, section)
    old = entries[: max(1, len(entries) - section.most // 2)]
    said = author.material.said
    filling = author.filling(count=len(old), heading=_heading(section))
    if section.condensed:
        lines[old[0]] = filling(section.condensed)
        gone = set(old[1:])
        messages = said.condense_zh if section.language else said.condense
    else:
        gone = set(old)
        messages = said.shorten
    if section.spaced:
        gone |= {at + 1 for at in gone if at + 1 < len(lines) and not lines[at + 1]}
    kept = [line for at, line in enumerate(lines) if at not in gone]
    return Change(_text(document, kept), filling.one_of(messages))


def _tick(lines: list[str], entries: list[int], rng: Random) -> bool:
    still_open = [at for at in entries if lines[at].startswith(_OPEN_TASK)]
    if not still_open:
        return False
    at = rng.choice(still_open)
    lines[at] = _DONE_TASK + lines[at].removeprefix(_OPEN_TASK)
    return True


def _opening(section: Section) -> list[str]:
    blank = [""] if section.heading.startswith("#") else []
    closing = [section.closing] if section.closing else []
    return [*[""] * section.above, section.heading, *blank, *section.frame, *closing]


def _insert(lines: list[str], document: Document, section: Section, line: str, at: int | None = None) -> None:
    """Put an entry in its section: in place of one about the same, in order, at ``at``, or last."""
    start_at, _ = _span(lines, document, section)
    entries = _entries(lines, document, section)
    for each in entries:
        if section.subject(lines[each]) == section.subject(line):
            lines[each] = line
            return
    if section.order:
        later = [each for each in entries if _rank(section, lines[each]) > _rank(section, line)]
        at = later[0] if later else None
    if at is not None:
        lines.insert(at, line)
    elif entries:
        at = entries[-1] + 1
        lines[at:at] = ["", line] if section.spaced else [line]
    else:
        _insert_first(lines, section, line, start_at)


def _insert_first(lines: list[str], section: Section, line: str, start_at: int) -> None:
    at = start_at + 1
    while at < len(lines) and (lines[at] in section.frame or (not lines[at] and at == start_at + 1)):
        at += 1
    follows_heading = at < len(lines) and lines[at].startswith("#")
    lines[at:at] = [line, ""] if follows_heading else [line]


def _rank(section: Section, line: str) -> str:
    if section.order == "text":
        return line
    return next((f"{at:02}" for at, month in enumerate(_MONTHS) if month and month in line), "")


def _entries(lines: list[str], document: Document, section: Section) -> list[int]:
    start_at, end = _span(lines, document, section)
    return [
        at
        for at in range(start_at + 1, end)
        if lines[at] and lines[at].startswith(section.prefix) and lines[at] not in section.frame
    ]


def _span(lines: list[str], document: Document, section: Section) -> tuple[int, int]:
    """Where a section's heading is, and where the section ends."""
    start_at = lines.index(section.heading)
    ends = {each.heading for each in document.sections} | ({section.closing} - {""})
    for at in range(start_at + 1, len(lines)):
        if lines[at] in ends:
            return start_at, at
    return start_at, len(lines)


def _longest(lines: list[str], document: Document, preferred: Section) -> Section:
    """The section to condense: the preferred one, unless the whole text is too long because of another."""
    if len(lines) <= LONGEST:
        return preferred
    present = [section for section in document.sections if section.heading in lines]
    return max(present, key=lambda section: len(_entries(lines, document, section)))


def _heading(section: Section) -> str:
    name = section.heading.lstrip("# ").removesuffix(" = [")
    return "the table" if "," in name else name


def _text(document: Document, lines: list[str]) -> str:
    """The lines as a text, without the blank ones that removals and merges leave behind."""
    blanks = 2 if document.path.endswith(".py") else 1
    kept: list[str] = []
    for line in lines:
        if line or any(kept[-blanks:]):
            kept.append(line)
    return "\n".join(kept).strip("\n") + "\n"
