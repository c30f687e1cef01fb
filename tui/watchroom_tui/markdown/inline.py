"""Inline Markdown tokens as styled lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from markdown_it.token import Token
from rich.cells import cell_len, chop_cells

from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize

_NARROW: Final = (
    "!-\u10ff\u1160-\u2e7f\ua4d0-\uabff\ud7a4-\uf8ff\ufb00-\ufe2f\ufe70-\ufeff\uff61-\uffdf\uffe7-\U0001f2ff"
    "\U0001fb00-\U0001ffff\U0003fffe-\U0010ffff"
)
"""Characters of words. All other characters are wide, and lines can be broken between them."""
_OPENING: Final = "（《「『【〈［｛"
_CLOSING: Final = "，。、；：？！）》」』】〉］｝…”’,.;:?!)"
_JOINED: Final = "\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff"
_UNIT: Final = re.compile("\n| +|[^\n ]+")
"""Units within which a line is not broken."""

_STYLES: Final = {"em": "em", "strong": "strong", "s": "strike", "link": "link"}


@cache
def _wide_unit() -> re.Pattern[str]:
    """Return the pattern of units in texts with wide characters: a word or a wide character, with its
    punctuation. Compile it on first use, because that takes 1 to 2 ms."""
    closing = re.escape(_CLOSING)
    return re.compile(f"\n| +|[{_OPENING}]*[{_NARROW}]+[{closing}]*|[{_OPENING}]*[^\n ][{closing}{_JOINED}]*")


class InlineRun(NamedTuple):
    """A piece of text with a style."""

    text: str
    style: str
    source: int
    """The source line, relative to the paragraph's first line."""


class InlineLine(NamedTuple):
    """A drawn line, and the source line of its start."""

    spans: list[Span]
    source: int = 0


def runs(tokens: Sequence[Token], base: str = "") -> list[InlineRun]:
    """Return the pieces of inline tokens. All text is sanitized."""
    return list(_runs(tokens, base, [0]))


def _runs(tokens: Sequence[Token], base: str, source: list[int]) -> Iterator[InlineRun]:
    inside: list[str] = [base] if base else []
    targets: list[tuple[str, str]] = []
    said = ""
    for place, token in enumerate(tokens):
        kind = token.type
        if kind.endswith("_open"):
            inside.append(_STYLES[kind.removesuffix("_open")])
            if kind == "link_open":
                targets.append((str(token.attrGet("href") or ""), str(token.attrGet("title") or "")))
                said = ""
            continue
        if kind.endswith("_close"):
            inside.pop()
            if kind == "link_close":
                yield from _target(*targets.pop(), said, base, source[0])
            continue
        style = " ".join(dict.fromkeys(inside))
        if kind in ("softbreak", "hardbreak"):
            source[0] += 1
            blank = "\n" if kind == "hardbreak" else _space(tokens, place)
            yield InlineRun(blank, style, source[0])
        elif kind == "image":
            alt = _plain(token.children or [])
            yield InlineRun(f"▣ {alt}", f"{style} link".strip(), source[0])
            yield from _target(
                str(token.attrGet("src") or ""), str(token.attrGet("title") or ""), alt, base, source[0]
            )
        else:
            said += token.content
            mark = {"code_inline": "code", "html_inline": "html"}.get(kind, "")
            yield InlineRun(sanitize(token.content), f"{style} {mark}".strip(), source[0])
            if kind == "html_inline":
                source[0] += token.content.count("\n")


def _target(target: str, title: str, said: str, base: str, source: int) -> Iterator[InlineRun]:
    """Yield the target and the title of a link. Leave out a target that is already the text of the link."""
    shown = [target] if target and target.removeprefix("mailto:") != said else []
    shown += [f"“{title}”"] if title else []
    if shown:
        yield InlineRun(" ", base, source)
        yield InlineRun(sanitize(f"⟨{' '.join(shown)}⟩"), f"{base} target".strip(), source)


def _space(tokens: Sequence[Token], place: int) -> str:
    """Return the text for a line break: a space, or nothing between two wide characters."""
    before = tokens[place - 1].content[-1:] if place else ""
    after = tokens[place + 1].content[:1] if place + 1 < len(tokens) else ""
    return "" if width_of(before) == width_of(after) == 2 else " "


def _plain(tokens: Sequence[Token]) -> str:
    """Return the text of ``tokens`` without styles, for an image's description."""
    words = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            words.append(_plain(token.children or []))
        else:
            words.append(token.content)
    return sanitize("".join(words))


def width_of(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def natural_width(pieces: Sequence[InlineRun]) -> int:
    """Return the width in cells of the longest unwrapped line."""
    return max(width_of(line) for line in "".join(run.text for run in pieces).split("\n"))


def wrap_runs(pieces: Sequence[InlineRun], width: int) -> list[InlineLine]:
    """Wrap the pieces into lines of at most ``width`` cells (at least 2). Break lines between words if
    possible."""
    text = "".join(run.text for run in pieces)
    lines = []
    run, run_start = 0, 0
    for start, end in _lines(text, width):
        spans: list[Span] = []
        while run < len(pieces) - 1 and run_start + len(pieces[run].text) <= start:
            run_start += len(pieces[run].text)
            run += 1
        source = pieces[run].source if pieces else 0
        at, place = run, run_start
        while at < len(pieces) and place < end:
            piece = pieces[at].text[max(0, start - place) : end - place]
            if piece:
                spans.append(Span(piece, pieces[at].style))
            place += len(pieces[at].text)
            at += 1
        lines.append(InlineLine(spans, source))
    return lines


def _lines(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line. Spaces at line breaks are left out."""
    if "\n" not in text and width_of(text) <= width:
        yield 0, len(text)
        return
    start = end = used = 0
    for match in (_UNIT if text.isascii() else _wide_unit()).finditer(text):
        unit = match[0]
        if unit == "\n":
            yield start, end
            start, end, used = match.end(), match.end(), 0
            continue
        cells = width_of(unit)
        if unit[0] == " ":
            if used == 0:
                start = end = match.end()
            used += cells if used else 0
            continue
        if used + cells > width and used:
            yield start, end
            start, used = match.start(), 0
        if cells > width:
            *full, rest = chop_cells(unit, width)
            for piece in full:
                yield start, start + len(piece)
                start += len(piece)
            cells = width_of(rest)
        used += cells
        end = match.end()
    yield start, end
