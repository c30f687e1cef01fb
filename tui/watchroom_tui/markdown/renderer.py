"""Render a chunk of Markdown as lines of a given width, with their source lines. Pure."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from markdown_it.token import Token
from watchroom_whiteboards.chunks import ChunkKind
from watchroom_whiteboards.markdown import block_parser

from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.markdown.inline import InlineLine, InlineRun, runs, width_of, wrap_runs
from watchroom_tui.presentation.sanitize import sanitize

# The modules for code and tables are imported on first use, because a first screen seldom needs them.
if TYPE_CHECKING:
    from watchroom_tui.markdown.tables import Align, TableCell, TableRow

MIN_WIDTH: Final = 8
"""Minimum width of a drawing in cells. Narrower panes show the beginnings of its lines."""

_MAX_BRACKETS: Final = 200
"""Maximum number of opening brackets in a parsed paragraph. Paragraphs with more are shown as plain text,
because markdown-it takes quadratic time for brackets."""

_SPECIAL: Final = re.compile(r"[\\`*_\[<&~\n]")
"""Pattern of words that may contain markup."""

_DELIMITERS: Final = re.compile(r"^[ >]*[|:-][-|: \t]*$", re.MULTILINE)
_MAX_CELLS: Final = 4000

_BULLETS: Final = "•◦▪"
_TITLES: Final = ("heading", "heading", "heading-3", "heading-4", "heading-4", "heading-6")
_RULES: Final = ("━", "─")
"""The lines below headings of the first levels. Deeper headings have a mark before their text instead."""

_DEEPER: Final = "▪"
"""The mark of deeper headings, once for each level below the levels with a line."""

_TASKS: Final = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


class MarkdownLine(NamedTuple):
    """A line on the screen. ``source`` is the source line at its start within the chunk, counted from 0."""

    spans: Sequence[Span]
    source: int


class RenderedChunk(NamedTuple):
    """A drawn chunk. ``waiting``: the languages whose lexers must be loaded to highlight the chunk."""

    lines: Sequence[MarkdownLine]
    waiting: frozenset[str] = frozenset()


def draw(
    text: str,
    width: int,
    references: MutableMapping[str, Any],
    *,
    kind: ChunkKind = "text",
    opener: str = "",
    is_followed: bool = False,
) -> RenderedChunk:
    """Draw ``text`` as lines of at most ``width`` cells.

    - ``references``: the link references of the complete text.
    - ``kind``: the kind of the chunk.
    - ``opener``: the first line of the block, if the chunk continues a block.
    - ``is_followed``: whether another chunk follows, so that the lines end with a blank line.
    """
    drawer = _Drawer(references)
    width = max(width, MIN_WIDTH)
    if kind == "fence":
        info = opener.strip().lstrip("`~")
        lines = drawer.code(_body(text, opener), info, 0, width, with_name=False)
    elif kind == "html" or _has_huge_table(opener + text):
        lines = drawer.raw(text, 0, width)
    else:
        head = opener if kind == "table" else ""
        lines = drawer.draw(head + text, width)
        shift = head.count("\n")
        lines = [line._replace(source=max(0, line.source - shift)) for line in lines]
    if is_followed and lines:
        lines.append(MarkdownLine((), lines[-1].source))
    return RenderedChunk(lines, frozenset(drawer.waiting))


def _has_huge_table(text: str) -> bool:
    """Return whether the text may contain a table with too many cells to draw quickly. All rows are counted
    as full rows."""
    columns = max((found[0].count("|") for found in _DELIMITERS.finditer(text)), default=0)
    return columns * text.count("\n") > _MAX_CELLS


def _body(text: str, opener: str) -> str:
    """Return code without its closing fence."""
    bare = text.rstrip("\r\n")
    last = bare[bare.rfind("\n") + 1 :].strip(" \t")
    mark = opener.strip()[:1]
    is_end = len(last) >= 3 and not last.strip(mark) and not opener.strip().startswith(last + mark)
    return bare[: bare.rfind("\n") + 1].rstrip("\n") if is_end else bare


class _Drawer:
    def __init__(self, references: MutableMapping[str, Any]) -> None:
        self.waiting: set[str] = set()
        self._references = references
        self._tokens: Sequence[Token] = ()
        self._at = 0
        self._depth = 0

    def draw(self, text: str, width: int) -> list[MarkdownLine]:
        self._tokens = block_parser().parse(text, self._references)
        return self._blocks(width)

    # -- containers

    def _blocks(self, width: int) -> list[MarkdownLine]:
        """Draw all blocks up to the end of the container, separated by blank lines."""
        lines: list[MarkdownLine] = []
        was_close = True
        while self._at < len(self._tokens) and self._tokens[self._at].nesting >= 0:
            token = self._tokens[self._at]
            drawn = self._block(token, width)
            if lines and drawn and (token.type == "heading_open" or not (was_close or token.hidden)):
                lines.append(MarkdownLine((), lines[-1].source))
            was_close = token.hidden or token.type == "heading_open"
            lines += drawn
        return lines

    def _block(self, token: Token, width: int) -> list[MarkdownLine]:
        self._at += 1
        source = token.map[0] if token.map else 0
        match token.type:
            case "paragraph_open":
                return self._paragraph(width)
            case "heading_open":
                return self._heading(token, source, width)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, width)
            case "blockquote_open":
                inner = self._blocks(max(MIN_WIDTH, width - 2))
                self._at += 1
                return _beside([Span("▌ ", "quote-bar")], [Span("▌ ", "quote-bar")], inner, width, "quote")
            case "table_open":
                return self._table(width)
            case "fence" | "code_block":
                first = source + (token.type == "fence")
                return self.code(token.content.removesuffix("\n"), token.info, first, width)
            case "hr":
                return [MarkdownLine([Span("┄" * width, "rule")], source)]
            case _:
                return self.raw(token.content, source, width)

    def _list(self, token: Token, width: int) -> list[MarkdownLine]:
        is_ordered = token.type == "ordered_list_open"
        number = int(token.attrGet("start") or 1) if is_ordered else 0
        # markdown-it omits a start of 1, so 0 must be distinguished from a missing start.
        number = 0 if is_ordered and token.attrGet("start") == 0 else number
        digits = len(str(number + self._count_items(token.level) - 1))
        mark = _BULLETS[min(self._depth, len(_BULLETS) - 1)]
        self._depth += 1
        items: list[list[MarkdownLine]] = []
        is_loose = False
        while self._tokens[self._at].type == "list_item_open":
            item = self._tokens[self._at]
            self._at += 1
            first = self._tokens[self._at]
            is_loose = is_loose or (first.type == "paragraph_open" and not first.hidden)
            task = self._task()
            before = f"{number:>{digits}}{item.markup} " if is_ordered else task or f"{mark} "
            style = ("ok" if task == _TASKS["[x] "] else "bullet") if task else "bullet"
            inner = self._blocks(max(MIN_WIDTH, width - len(before)))
            inner = inner or [MarkdownLine((), item.map[0] if item.map else 0)]
            marks = [Span(before, style)]
            if is_ordered and task:
                inner[0] = inner[0]._replace(spans=[Span(task, style), *inner[0].spans])
            items.append(_beside(marks, [Span(" " * len(before))], inner, width))
            self._at += 1
            number += 1
        self._at += 1
        self._depth -= 1
        lines = items[0] if items else []
        for each in items[1:]:
            lines += [MarkdownLine((), lines[-1].source)] if is_loose else []
            lines += each
        return lines

    def _count_items(self, level: int) -> int:
        """Return the number of items in the list that was just opened."""
        count = 0
        for token in self._tokens[self._at :]:
            if token.level == level and token.nesting < 0:
                break
            count += int(token.level == level + 1 and token.type == "list_item_open")
        return count

    def _task(self) -> str:
        """Remove the checkbox from the item that starts here, and return its sign. Return an empty sign if
        the item is not a task."""
        if self._tokens[self._at].type != "paragraph_open":
            return ""
        words = self._tokens[self._at + 1]
        box = _TASKS.get(words.content[:4], "")
        if box:
            words.content = words.content[4:]
        return box

    # -- blocks of words

    def _words(self, token: Token, style: str = "") -> list[InlineRun]:
        if token.content.count("[") > _MAX_BRACKETS:
            lines = token.content.split("\n")
            return [
                InlineRun(sanitize(line) + ("\n" if number + 1 < len(lines) else ""), style, number)
                for number, line in enumerate(lines)
            ]
        if not _SPECIAL.search(token.content):
            return [InlineRun(sanitize(token.content), style, 0)]
        children: list[Token] = []
        parser = block_parser()
        parser.inline.parse(token.content, parser, self._references, children)
        return runs(children, style)

    def _paragraph(self, width: int) -> list[MarkdownLine]:
        token = self._tokens[self._at]
        self._at += 2
        return _at(wrap_runs(self._words(token), width), token)

    def _heading(self, opening: Token, source: int, width: int) -> list[MarkdownLine]:
        token = self._tokens[self._at]
        self._at += 2
        level = int(opening.tag[1])
        style = _TITLES[level - 1]
        marks = "" if level <= len(_RULES) else _DEEPER * (level - len(_RULES)) + " "
        inner = _at(wrap_runs(self._words(token, style), max(MIN_WIDTH, width - len(marks))), token)
        if marks:
            return _beside([Span(marks, "bullet")], [Span(" " * len(marks))], inner, width)
        return [*inner, MarkdownLine([Span(_RULES[level - 1] * width, "rule")], source)]

    # -- literal blocks

    def code(
        self, text: str, info: str, source: int, width: int, *, with_name: bool = True
    ) -> list[MarkdownLine]:
        """Draw code on its own background. The language is shown at the right if there is space."""
        from watchroom_tui.markdown.code import coloured, is_ready, language_of, wrapped

        language = language_of(info)
        if not is_ready(language):
            self.waiting.add(language)
        lines = []
        for number, line in enumerate(coloured(text, language)):
            for part in wrapped(line, width - 2):
                spans = [Span(" ", "block"), *(Span(each, f"block {style}".strip()) for each, style in part)]
                free = width - 1 - sum(width_of(span.text) for span in part)
                lines.append(MarkdownLine([*spans, Span(" " * free, "block")], source + number))
        name = sanitize(info.strip())
        if with_name and name:
            lines = self._named(lines, name, source, width)
        return lines

    def _named(self, lines: list[MarkdownLine], name: str, source: int, width: int) -> list[MarkdownLine]:
        """Add the info string of the fence: on the first line if there is space, else above."""
        cells = width_of(name) + 2
        if lines:
            spans = list(lines[0].spans)
            free = len(spans[-1].text)
            if free > cells + 2:
                label = [Span(" " * (free - cells), "block"), Span(f" {name} ", "block dim")]
                return [lines[0]._replace(spans=[*spans[:-1], *label]), *lines[1:]]
        above = []
        for words in wrap_runs([InlineRun(name, "block dim", 0)], width - 2):
            rest = Span(" " * (width - 1 - sum(width_of(span.text) for span in words.spans)), "block")
            above.append(MarkdownLine([Span(" ", "block"), *words.spans, rest], max(0, source - 1)))
        return [*above, *lines]

    def raw(self, text: str, source: int, width: int) -> list[MarkdownLine]:
        """Draw HTML as literal text."""
        return [
            MarkdownLine(part.spans, source + number)
            for number, line in enumerate(text.removesuffix("\n").split("\n"))
            for part in wrap_runs([InlineRun(sanitize(line), "html", 0)], width)
        ]

    # -- tables

    def _table(self, width: int) -> list[MarkdownLine]:
        from watchroom_tui.markdown.tables import TableCell, TableRow, draw_table

        rows: list[TableRow] = []
        aligns: list[Align] = []
        cells: list[TableCell] = []
        while (token := self._tokens[self._at]).type != "table_close":
            self._at += 1
            if token.type == "tr_open":
                cells = []
                rows.append(TableRow(cells, token.map[0] if token.map else 0))
            elif token.type == "th_open":
                align = str(token.attrGet("style") or "").removeprefix("text-align:")
                aligns.append(cast("Align", align or "left"))
            elif token.type == "inline":
                cells.append(TableCell(self._words(token, "strong" if len(rows) == 1 else "")))
        self._at += 1
        return [MarkdownLine(*line) for line in draw_table(rows[0], rows[1:], aligns, width)]


def _at(lines: Sequence[InlineLine], token: Token) -> list[MarkdownLine]:
    first = token.map[0] if token.map else 0
    return [MarkdownLine(line.spans, first + line.source) for line in lines]


def _beside(
    first: Sequence[Span], rest: Sequence[Span], lines: Sequence[MarkdownLine], width: int, style: str = ""
) -> list[MarkdownLine]:
    """Return the lines, each with a prefix. Put the prefix above if the width is too small for both."""
    if width - sum(width_of(span.text) for span in first) < MIN_WIDTH:
        above = wrap_runs([InlineRun("".join(span.text for span in first).strip(), first[0].style, 0)], width)
        source = lines[0].source if lines else 0
        return [*(MarkdownLine(each.spans, source) for each in above), *lines]
    return [
        MarkdownLine(
            [
                *(rest if number else first),
                *(Span(text, f"{style} {own}".strip()) for text, own in line.spans),
            ],
            line.source,
        )
        for number, line in enumerate(lines)
    ]
