"""Splits a Markdown text at its headings and around its code, at places where this does not change its
meaning. Pure.

A line that begins with ``#`` ends every paragraph, list, quote and table. Only an open fence or HTML at top
level can contain it. Regular expressions find the simple cases; markdown-it parses only a few lines around
doubtful places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from markdown_it.rules_block.html_block import HTML_SEQUENCES
from markdown_it.token import Token

from watchroom_whiteboards.markdown import block_parser

SegmentKind: TypeAlias = Literal["text", "fence", "html", "rough"]


class HeadingMark(NamedTuple):
    """The ``level`` of a heading, and the byte offsets of its ``start`` and its ``body``.

    ``content``: its unparsed title; None if the title is its first line.
    """

    level: int
    start: int
    body: int
    content: str | None = None


class TextSegment(NamedTuple):
    """A piece of a text that has the same meaning when parsed alone. Top-level blocks are never split.

    - ``rough``: the segment is too long to be examined.
    - ``is_open``: a fence or HTML in it is not closed.
    - ``closing``: the line that would close it.
    """

    start: int
    end: int
    kind: SegmentKind = "text"
    marks: tuple[HeadingMark, ...] = ()
    is_open: bool = False
    closing: str = ""


BOM: Final = "\ufeff".encode()
_LINE: Final = rb"""
    (?P<atx> \#{1,6} (?= [ \t\r\n] | \Z ))
  | (?P<fence> `{3,} [^`\r\n]*+ (?= [\r\n] | \Z ) | ~{3,} [^\r\n]*+ )
  | [ ]{1,3} (?: \# | ``` | ~~~ )
  | [ ]{0,3} < [A-Za-z/!?]
  | (?P<rule> [ ]{0,3} (?: =+ | -+ ) [ \t]*+ (?= [\r\n] | \Z ))
"""
"""Matches the beginnings of lines that can end a segment. Alternatives without a name are doubtful: indented
headings and fences can belong to a list, and HTML begins in seven ways."""

_FIRST: Final = re.compile(_LINE, re.VERBOSE)
_NEXT: Final = re.compile(rb"\n (?= [\#`~\ <=-] ) (?:" + _LINE + rb")", re.VERBOSE)
_LINE_END: Final = re.compile(rb"\r\n?|\n")
_DELIMITERS: Final = re.compile(rb"[ ]{0,3}[|:-]")
_SAFE: Final = re.compile(
    rb"(?:\r\n?+|\n)"
    rb"(?:[ \t]*+(?:\r\n?+|\n)(?=[A-Za-z\x80-\xff])|(?=[-*+][ ][A-Za-z\x80-\xff\[][^|\r\n]*+[\r\n]))"
)
"""Matches before a line that certainly begins a paragraph or a list at top level. Only a fence or HTML could
contain the line. A line with a | could also be the head of a table, unless it continues a list."""
_LETTER: Final = re.compile(rb"[A-Za-z\x80-\xff]")
_SAFE_MARKS: Final = (b"\n\n", b"\n\r\n", b"\n- ", b"\n* ")
_SENTINEL: Final = "# x"
_BLANK: Final = re.compile(rb"(?:(?<=\n)|(?<=\r)(?!\n))[ \t]*+(?=[\r\n]|\Z)")
_CLOSER: Final = re.compile(rb"[ ]{0,3}(?:`+|~+)[ \t]*[\r\n]*")
_REACH: Final = 8
"""The distance to search for the next segment, as a multiple of the maximum length of a segment."""
_MAX_TRIES: Final = 8
_NEAR: Final = 250
"""The number of bytes after a doubtful line that are searched first for a place where a segment can certainly
begin."""

_HTML_ENDS: Final = (
    (rb"(?i)</(script|pre|style|textarea)>", "</script>"),
    (rb"-->", "-->"),
    (rb"\?>", "?>"),
    (rb">", ">"),
    (rb"\]\]>", "]]>"),
)
"""The ends of the kinds of HTML that do not end at a blank line, in the order of `HTML_SEQUENCES`."""


@cache
def _next_with_returns() -> re.Pattern[bytes]:
    """Return `_NEXT` for texts with carriage returns. Compiled on first use, because such texts are rare."""
    return re.compile(rb"[\r\n] (?= [\#`~\ <=-] ) (?:" + _LINE + rb")", re.VERBOSE)


class _SegmentSplitter:
    """Splits a text from the start of a segment to the end of the text."""

    def __init__(self, data: bytes, max_bytes: int | None) -> None:
        self._data = data
        self._max_bytes = len(data) if max_bytes is None else max_bytes
        self._has_returns = b"\r" in data
        self._next = _next_with_returns() if self._has_returns else _NEXT

    def split(self, start: int) -> Iterator[TextSegment]:
        data, size = self._data, len(self._data)
        marks: tuple[HeadingMark, ...] = ()
        limit = self._limit(start)
        found = _FIRST.match(data, start, limit) or self._next.search(data, start, limit)
        while start < size:
            if found is None:
                end = size if limit == size else self._safe_before(start, limit, marks)
                kind: SegmentKind = "text" if end > start else "rough"
                yield TextSegment(start, end if end > start else limit, kind, marks)
                start, marks = end if end > start else limit, ()
                after = start
            else:
                line = found.start(found.lastgroup) if found.lastgroup else self._line_start(found.start())
                after = self._line_after(line)
                title = self._title(found, start, line, after, marks)
                if title is not None:
                    if start < title.start:
                        yield TextSegment(start, title.start, "text", marks)
                    start, marks = title.start, (title,)
                elif found.lastgroup != "rule" or self._underlined(start, line, marks) != line:
                    for part in self._beyond(found, start, line, marks):
                        yield part
                        start = part.end
                    marks, after = (), start
            limit = self._limit(start)
            # A segment ends with a line or with the text.
            found = self._next.search(data, after - 1, limit) if after < size else None

    def _limit(self, start: int) -> int:
        """Return the line end at which the search for the segment that begins at ``start`` stops."""
        return self._line_after(min(len(self._data), start + _REACH * self._max_bytes))

    def _title(
        self, found: re.Match[bytes], start: int, line: int, after: int, marks: tuple[HeadingMark, ...]
    ) -> HeadingMark | None:
        """Return the heading in this line, or the heading that it underlines. None if there is no
        heading, or if it is doubtful."""
        if found.lastgroup == "atx":
            return None if self._may_be_table(line, after) else HeadingMark(len(found["atx"]), line, after)
        if found.lastgroup != "rule":
            return None
        words = self._underlined(start, line, marks)
        if words is None or words == line:
            return None
        content = self._data[words:line].decode().replace("\0", "�").strip()
        return HeadingMark(1 if b"=" in found["rule"] else 2, words, after, content)

    def _beyond(
        self, found: re.Match[bytes], start: int, line: int, marks: tuple[HeadingMark, ...]
    ) -> Iterator[TextSegment]:
        """Yield the segments from ``start`` to the end of the fence, HTML or doubtful lines at ``line``."""
        is_fence = found.lastgroup == "fence" and not self._may_be_table(line, self._line_after(line))
        html = self._clear_html(start, line, marks)
        is_clear = is_fence or html is not None
        end = line if is_clear else self._safe_before(start, line, marks)
        if start < end:
            yield TextSegment(start, end, "text", marks)
        if is_fence:
            yield self._fence(line, found["fence"])
        elif html is not None:
            yield self._html(line, html)
        else:
            yield from self._doubtful(end, line)

    def _line_start(self, found: int) -> int:
        """Return the start of a match without the line end before it, if there is one."""
        return found + 1 if self._data[found : found + 1] in (b"\n", b"\r") else found

    def _line_after(self, place: int) -> int:
        if self._has_returns:
            found = _LINE_END.search(self._data, place)
            return found.end() if found else len(self._data)
        return self._data.find(b"\n", place) + 1 or len(self._data)

    def _underlined(self, start: int, line: int, marks: tuple[HeadingMark, ...]) -> int | None:
        """Return the start of the heading that this line underlines. Return the start of the line itself if
        it underlines nothing, and None if this is doubtful."""
        if line == start or (marks and marks[-1].body == line):
            return line
        words, end = self._line_before(start, line)
        text = self._data[words:end]
        if not text.strip(b" \t"):
            return line
        is_first = words == start or (marks and marks[-1].body == words)
        is_clear = is_first or not self._data[slice(*self._line_before(start, words))].strip(b" \t")
        return words if is_clear and b"|" not in text and _LETTER.match(text) else None

    def _line_before(self, start: int, line: int) -> tuple[int, int]:
        """Return the start and the end of the line before ``line``. The start is at least ``start``."""
        data = self._data
        end = line - 1
        if end > start and data[end - 1 : line] == b"\r\n":
            end -= 1
        begin = max(start, data.rfind(b"\n", start, end) + 1)
        return max(begin, data.rfind(b"\r", begin, end) + 1), end

    def _may_be_table(self, line: int, after: int) -> bool:
        """Return whether a line that begins like a heading or a fence may be the head of a table."""
        return b"|" in self._data[line:after] and _DELIMITERS.match(self._data, after) is not None

    def _safe_before(self, start: int, line: int, marks: tuple[HeadingMark, ...]) -> int:
        """Return the last place before or at ``line`` where a segment can begin."""
        data = self._data
        best = marks[-1].body if marks else start
        for mark in _SAFE_MARKS:
            end = line + 1
            for _ in range(_MAX_TRIES):
                place = data.rfind(mark, best, end)
                if place < 0:
                    break
                found = _SAFE.match(data, place)
                if found and best < found.end() <= line:
                    best = found.end()
                    break
                end = place + len(mark) - 1
        return best

    def _doubtful(self, start: int, line: int) -> Iterator[TextSegment]:
        """Yield the segments from ``start``, through the doubtful ``line``, to the next place where a segment
        can certainly begin."""
        data = self._data
        after = self._line_after(line)
        end = max(after, self._line_after(min(len(data), start + self._max_bytes)))
        if after < end:
            end = self._clear_after(after, end)
        if end - start > self._max_bytes:
            yield self._cut_off(start, end)
            return
        tokens, lines = _blocks(data[start:end], start)
        sentinel = len(lines) - 1
        marks = _marks(tokens, lines, sentinel)
        name, first = next(
            (token.type, token.map[0]) for token in reversed(tokens) if token.level == 0 and token.map
        )
        if first == sentinel:
            yield TextSegment(start, end, "text", marks)
            return
        opening = lines[first]
        if opening > start:
            yield TextSegment(start, opening, "text", marks)
        if name == "fence":
            yield self._fence(opening, data[opening : self._line_after(opening)].strip(b" \r\n"))
        else:
            html = self._html_kind(opening)
            if html is None:
                raise ValueError("a block of HTML of an unknown kind")
            yield self._html(opening, html)

    def _clear_after(self, line: int, end: int) -> int:
        """Return the first place after ``line``, up to ``end``, where a segment can begin.

        The search widens step by step, because the place is usually near. Otherwise every doubtful line
        would search the whole text.
        """
        reach = _NEAR
        while True:
            stop = min(end, self._line_after(min(end, line + reach)))
            safe = _SAFE.search(self._data, line - 1, stop)
            place = safe.end() if safe else stop
            for found in self._next.finditer(self._data, line - 1, place):
                kind = found.lastgroup
                if kind in ("atx", "fence"):
                    return found.start(kind)
            if safe or stop == end:
                return place
            reach *= 4

    def _cut_off(self, start: int, end: int) -> TextSegment:
        """Return the first segment of a doubtful stretch that is too long.

        It has all blocks except the last, which may continue. If there is only one block, the segment is
        ``rough``.
        """
        stop = self._data.rfind(b"\n", start, start + self._max_bytes) + 1
        tokens, lines = _blocks(self._data[start : max(start, stop)], start)
        begun = [token.map[0] for token in tokens if token.level == 0 and token.map]
        last = max((line for line in begun if line < len(lines) - 1), default=0)
        return (
            TextSegment(start, lines[last], "text", _marks(tokens, lines, last))
            if last
            else TextSegment(start, end, "rough")
        )

    def _clear_html(self, start: int, line: int, marks: tuple[HeadingMark, ...]) -> int | None:
        """Return the kind of HTML that begins at this line; None if there is none, or if this is doubtful.

        At the margin, most kinds end any block before them, like a heading. The last kind does this only
        after a blank line or a heading.
        """
        if self._data[line : line + 1] != b"<":
            return None
        number = self._html_kind(line)
        is_first = line == start or (marks and marks[-1].body == line)
        if number is None or HTML_SEQUENCES[number][2] or is_first:
            return number
        is_apart = not self._data[slice(*self._line_before(start, line))].strip(b" \t")
        return number if is_apart else None

    def _html_kind(self, opening: int) -> int | None:
        """Return the index in `HTML_SEQUENCES` of the kind that begins at this line; None if none does."""
        words = self._data[opening : self._line_after(opening)].strip(b" \t\r\n")
        line = words.decode().replace("\0", "�")
        begun = (number for number, (begin, _, _) in enumerate(HTML_SEQUENCES) if begin.search(line))
        return next(begun, None)

    def _fence(self, opening: int, text: bytes) -> TextSegment:
        """Return the whole fence that opens with ``text``."""
        length = len(text) - len(text.lstrip(text[:1]))
        place = self._line_after(opening)
        mark = text[:length]
        while (place := self._data.find(mark, place)) >= 0:
            after = self._line_after(place)
            begin = max(
                self._data.rfind(b"\n", opening, place),
                self._data.rfind(b"\r", max(opening, place - 4), place),
            )
            if _CLOSER.fullmatch(self._data, begin + 1, after):
                return TextSegment(opening, after, "fence")
            place = after
        return TextSegment(opening, len(self._data), "fence", (), True, mark.decode())

    def _html(self, opening: int, kind: int) -> TextSegment:
        """Return the whole HTML of ``kind`` that opens here."""
        data = self._data
        if kind >= len(_HTML_ENDS):
            found = _BLANK.search(data, opening)
            end = found.start() if found else len(data)
            return TextSegment(opening, end, "html", (), end == len(data))
        pattern, closing = _HTML_ENDS[kind]
        found = re.compile(pattern).search(data, opening)
        end = self._line_after(found.end()) if found else len(data)
        return TextSegment(opening, end, "html", (), found is None, "" if found else closing)


def _blocks(text: bytes, start: int) -> tuple[Sequence[Token], list[int]]:
    """Return the blocks of a text from ``start`` followed by a sentinel, and the starts of its lines. The
    last line is the sentinel's."""
    lines = [start, *(start + found.end() for found in _LINE_END.finditer(text))]
    has_end = text.endswith((b"\n", b"\r"))
    if not has_end:
        lines.append(start + len(text))
    return block_parser().parse(text.decode() + ("" if has_end else "\n") + _SENTINEL), lines


def _marks(tokens: Sequence[Token], lines: Sequence[int], before: int) -> tuple[HeadingMark, ...]:
    """Return the top-level headings before a line."""
    found = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and not token.level and token.map and token.map[0] < before:
            first, after = token.map
            found.append(
                HeadingMark(int(token.tag[1]), lines[first], lines[after], tokens[place + 1].content)
            )
    return tuple(found)


def split_segments(data: bytes, start: int = 0, *, max_bytes: int | None = None) -> Iterator[TextSegment]:
    """Yield the segments of ``data`` (UTF-8).

    - ``start``: the byte offset of a segment; default: the beginning.
    - ``max_bytes``: longer doubtful stretches are not examined; default: no limit.

    A byte order mark at the beginning is part of the first segment and has no meaning.
    """
    splitter = _SegmentSplitter(data, max_bytes)
    if start or not data.startswith(BOM):
        yield from splitter.split(start)
        return
    segments = splitter.split(len(BOM))
    first = next(segments, TextSegment(0, len(data)))
    yield first._replace(start=0)
    yield from segments
