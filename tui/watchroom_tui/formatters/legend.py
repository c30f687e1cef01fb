"""The legend of all signs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from watchroom.texts import Catalogue

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.styled_text import Line, Span

_VERSION_SIGNS: Final[Sequence[tuple[str, Span]]] = (
    ("version", Span("v3", "ok")),
    ("refused", Span("✗", "error")),
    ("by_hand", Span("✎", "warning")),
    ("unchanged", Span("·", "dim")),
)
_MESSAGE_SIGNS: Final[Sequence[tuple[str, Span]]] = (
    ("sent", Span("·", "dim")),
    ("delivered", Span("✓")),
    ("read", Span("✓✓", "ok")),
)
_JOURNAL_SIGNS: Final[Sequence[tuple[str, Span]]] = (("seal", Span("▣", "dim")),)


def legend_lines(texts: Catalogue) -> list[Line]:
    """Return lines that explain the signs for agents, needs, rows, the timeline, messages and the journal."""
    return [
        *_group("agents", labels.STATUS_MARKS.items(), texts),
        *_group("needs", labels.NEED_MARKS.items(), texts),
        *_group("rows", _VERSION_SIGNS, texts),
        *_group("timeline", labels.MARKER_SIGNS.items(), texts),
        *_group("messages", _MESSAGE_SIGNS, texts),
        *_group("journal", _JOURNAL_SIGNS, texts),
    ]


def _group(name: str, signs: Iterable[tuple[str, Span]], texts: Catalogue) -> Iterator[Line]:
    yield [Span(f" {texts(f'legend.{name}.title')}", "title")]
    for key, sign in signs:
        blank = " " * (15 - len(sign.text))
        yield [Span("   "), sign, Span(blank + texts(f"legend.{name}.{key}"))]
    yield []
