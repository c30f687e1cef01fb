"""A search hit in one line: its place, and the excerpt."""

from __future__ import annotations

from watchroom.history.search import Hit

from watchroom_tui.formatters.labels import path_of
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize


def place_of(hit: Hit) -> str:
    """Return the zone and path of ``hit``, with its version and line if it has them. Sanitized."""
    row = hit.row
    place = f"{row.zone} {sanitize(path_of(row))}"
    if row.version is not None and hit.line:
        place += f" v{row.version}"
    return f"{place}:{hit.line}" if hit.line else place


def marked_line(hit: Hit, before: int) -> Line:
    """Return the excerpt of ``hit`` as one line with its matches marked. It starts at most ``before``
    characters before the first match."""
    text, matches = excerpt_line(hit)
    start = max(0, matches[0][0] - before) if matches else 0
    spans = [Span("…", "dim")] if start else []
    for first, last in matches:
        spans += [Span(text[start:first]), Span(text[first:last], "match")]
        start = last
    return [*spans, Span(text[start:])]


def marked_lines(hit: Hit) -> list[Line]:
    """Return the excerpt of ``hit`` line by line, with its matches marked."""
    lines: list[Line] = []
    at = 0
    for text in hit.excerpt.rstrip().split("\n"):
        spans, done = [Span(" ")], 0
        for start, end in hit.matches:
            first, last = (max(0, min(len(text), edge - at)) for edge in (start, end))
            if first < last:
                spans += [Span(sanitize(text[done:first])), Span(sanitize(text[first:last]), "match")]
                done = last
        lines.append([*spans, Span(sanitize(text[done:]))])
        at += len(text) + 1
    return lines


def excerpt_line(hit: Hit) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the excerpt of ``hit`` as one sanitized line, and the ranges of its matches."""
    text = hit.excerpt.rstrip()
    shown, matches, at = "", [], 0
    for start, end in hit.matches:
        shown += sanitize(text[at:start])
        match = sanitize(text[start:end])
        matches.append((len(shown), len(shown) + len(match)))
        shown += match
        at = end
    return shown + sanitize(text[at:]), tuple(matches)
