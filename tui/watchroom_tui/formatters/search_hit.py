"""What a search found, in one line: where it is, and the excerpt."""

from __future__ import annotations

from watchroom.search.result import Hit

from watchroom_tui.formatters.labels import path_of
from watchroom_tui.sanitize import sanitize


def place_of(hit: Hit) -> str:
    """The zone and path of ``hit``, with its version and line where it has them; safe to show."""
    row = hit.row
    place = f"{row.zone} {sanitize(path_of(row))}"
    if row.version is not None and hit.line:
        place += f" v{row.version}"
    return f"{place}:{hit.line}" if hit.line else place


def excerpt_line(hit: Hit) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The excerpt of ``hit`` as one line that is safe to show, and the places in it that match."""
    text = hit.excerpt.rstrip()
    shown, matches, at = "", [], 0
    for start, end in hit.matches:
        shown += sanitize(text[at:start])
        match = sanitize(text[start:end])
        matches.append((len(shown), len(shown) + len(match)))
        shown += match
        at = end
    return shown + sanitize(text[at:]), tuple(matches)
