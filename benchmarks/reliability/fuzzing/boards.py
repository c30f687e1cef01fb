"""Markdown boards: outline, chunks, sections, items, and their drawing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from random import Random
from typing import Final, Self

from rich.cells import cell_len
from watchroom.errors import WatchroomError
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_whiteboards.board_parser import parse_board
from watchroom_whiteboards.chunks import chunks
from watchroom_whiteboards.outline import closing, headings
from watchroom_whiteboards.sections import (
    append_to_section,
    find_section,
    parse_sections,
    replace_section_body,
    section_name,
)

from reliability.fuzzing.mutation import mutated, some_text
from reliability.fuzzing.oracle import check_line, refusal_kind, require, within_seconds

_HEIGHT: Final = 30
_SECONDS: Final = 0.5
_PIECES: Final = (
    *("# a", "## b ##", "### Task #1", "###### d", "#", "    # h", "a\n===", "b\n---", "- # i", "> # q"),
    *("```", "~~~~ py", "``` a`b", "    code", "\tcode", "<div>", "</div>", "<!--", "-->", "<?", "<script>"),
    *("- [ ] a", "- [x] b", "* c", "1. d", "10) e", "  - f", "-", "> a", ">> b", "> - c", "***", "- - -"),
    *("| a | b |", "|---|:-:|", "--|--", "|", "a|b", "[k]: /u 'x'", "[k]:", "[a][k]", '![i](u "t")', "[k]"),
    *("**b** *i* ~~s~~", "`c`", "``", "*", "_", "<https://a.b>", "&amp;", "&#8238;", "&#0;", "\\", "  ", ""),
    *("## Decisions", "### Decision #1", "- **Status**: open", "- **作者**: x", "## Milestones", "## 里程碑"),
    *("## Update log", "- [2026-01-31 09:30] alice: did it", "## Update (2026-01-31 09:30)", "## Risks"),
    *("## Tasks", "- **Assignee**: bob", "## Negotiations", "### Negotiation #2", "**Author**: ada", "text"),
)
_ENDS: Final = ("\n", "\n", "\n", "\n\n", "\r\n", "\r")
_TOKENS: Final = tuple(each.encode() for each in (*_PIECES, *"#`~<>-=|[]:.*! \t", "\n", "\r\n", "> " * 20))
_ENTRIES: Final = (
    "text",
    "- item",
    "### x",
    "```\ncode",
    "<div>",
    "    # no",
    "a\r\n\r\nb",
    "# top",
    "===",
    "",
)


class Boards:
    """Reads, outlines, changes and draws a board."""

    name = "boards"
    size = 60_000
    period = 1_000_000_000
    slow_seconds = 5.0
    """Max seconds of CPU for all steps. Each step has its own limit."""

    def __init__(self, folder: Path) -> None:
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        lines = (
            chance.choice(_PIECES) if chance.random() < 0.8 else some_text(chance)
            for _ in range(chance.randint(0, 30))
        )
        return "".join(line + chance.choice(_ENDS) for line in lines).encode()

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        return mutated(data, chance, self.size, _TOKENS, other)

    def run(self, data: bytes) -> Hashable:
        # Boards are UTF-8, and other files are refused earlier.
        data = data.decode("utf-8", "replace").encode()
        with within_seconds(_SECONDS, "finding headings"):
            found = headings(data)
        require([each.start for each in found] == sorted({each.start for each in found}), "headings in order")
        with within_seconds(_SECONDS, "cutting into chunks"):
            pieces = list(chunks(data))
        require(b"".join(data[each.start : each.end] for each in pieces) == data, "chunks that are not all")
        with within_seconds(_SECONDS, "finding what is open"):
            closing(data)
        with within_seconds(3 * _SECONDS, "changing a section"):
            edits = self._edit(data)
        with within_seconds(_SECONDS, "reading items"):
            items = parse_board(data.decode())
        with within_seconds(_SECONDS, "drawing"):
            drawn = self._draw(data)
        return (
            *(min(len(each), 3) for each in (found, *items)),
            frozenset(each.rule for each in items.problems),
            frozenset(each.kind for each in pieces),
            edits,
            min(drawn, 20),
        )

    def check(self) -> Sequence[str]:
        return ()

    def _edit(self, data: bytes) -> Hashable:
        sections = parse_sections(data)
        kinds = set[Hashable]()
        self._number += 1
        for section in sections[self._number % len(sections) :][:1] if sections else ():
            name = section_name(data, section, sections)
            try:
                require(find_section(data, "global", name, sections) == section, f"{name!r} names another")
            except WatchroomError as error:
                kinds.add(refusal_kind(error))
            text = _ENTRIES[self._number % len(_ENTRIES)]
            for change in (replace_section_body, append_to_section):
                try:
                    changed = change(data, section, text, sections)
                except WatchroomError as error:
                    kinds.add(refusal_kind(error))
                else:
                    require(len(changed.encode()) <= 2 * len(data) + 1000, "a text that has doubled")
        return frozenset(kinds)

    def _draw(self, data: bytes) -> int:
        width = (80, 20, 200)[self._number % 3]
        drawing = BoardDrawing(data)
        # With the blanks beside the text.
        drawing.fit(width + 2)
        drawing.settle(0, 0, _HEIGHT)
        last = drawing.settle(max(0, len(drawing) - 1), _HEIGHT, 0)
        for row in (*range(min(_HEIGHT, len(drawing))), *range(max(0, last - _HEIGHT), last)):
            text = drawing.cell_texts(row)[0]
            check_line(text)
            require(cell_len(text) <= width, ("a line that is too wide", text))
        drawing.anchor(last)
        drawing.row_at(len(data) // 2)
        return len(drawing)
