"""A whiteboard's text as one who keeps it sees it: in parts that begin with headings. Pure.

This is how a careful agent reads Markdown, not how Watchroom does: what it does not know it leaves as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

SECTION: Final = "## "
ENTRY: Final = "### "
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_BLANK: Final = re.compile(r"\{\w+\}")
_NUMBER: Final = re.compile(r"#(\d+)")
_FIELD: Final = re.compile(r"(?P<mark>- \*\*(?P<name>[^*]+)\*\*[:：] ?)(?P<value>.*)")


class Part(NamedTuple):
    """A heading with what stands below it, up to the next one of its level; without a title what stands
    above the first one."""

    title: str
    body: str

    @property
    def is_blank(self) -> bool:
        """Whether it still is the template's."""
        return bool(_BLANK.search(self.title))

    @property
    def number(self) -> int:
        """The number in its title, 0 where it has none."""
        found = _NUMBER.search(self.title)
        return int(found[1]) if found else 0

    def value(self, names: Iterable[str]) -> str:
        """What stands in the field of one of these names, empty if there is none."""
        fields = (_FIELD.match(line) for line in self.body.split("\n"))
        return next((found["value"].strip() for found in fields if found and found["name"] in names), "")

    def with_value(self, names: Iterable[str], value: str) -> Part:
        lines = self.body.split("\n")
        for at, line in enumerate(lines):
            found = _FIELD.match(line)
            if found and found["name"] in names:
                lines[at] = found["mark"] + value
        return self._replace(body="\n".join(lines))


def parts_of(text: str, marks: str) -> list[Part]:
    """A text in its parts, whose headings begin with ``marks``. The first stands above the first heading."""
    titles, bodies = [""], [list[str]()]
    in_code = False
    for line in text.split("\n"):
        in_code ^= bool(_FENCE.match(line))
        if line.startswith(marks) and not in_code:
            titles.append(line.removeprefix(marks).strip())
            bodies.append([])
        else:
            bodies[-1].append(line)
    return [
        Part(*each) for each in zip(titles, ("\n".join(lines).strip("\n") for lines in bodies), strict=True)
    ]


def joined(parts: Iterable[Part], marks: str) -> str:
    """The text of parts: of sections with an empty line after their headings, of entries without."""
    gap = "\n\n" if marks == SECTION else "\n"
    texts = (f"{marks}{part.title}{gap}{part.body}" if part.title else part.body for part in parts)
    return "\n\n".join(text.rstrip("\n") for text in texts if text)


def entries_of(text: str) -> list[Part]:
    """The entries of a section, without those that the template shows as an example."""
    return [part for part in parts_of(text, ENTRY) if not part.is_blank]


def lines_of(text: str) -> list[str]:
    """The entries of a section that is one list, each with its further lines, without the template's."""
    found: list[str] = []
    for line in text.split("\n"):
        if line.startswith("- ") or not found:
            found.append(line)
        elif line:
            found[-1] += f"\n{line}"
    return [entry for entry in found if entry and not _BLANK.search(entry)]


def next_number(parts: Iterable[Part]) -> int:
    return 1 + max((part.number for part in parts), default=0)
