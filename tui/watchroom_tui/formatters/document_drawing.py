"""A realtime document as rows: each field by its type, with its authors and its new parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.algorithms.crdt import FieldType, TextRun
from watchroom.algorithms.crdt.history import (
    AttributedCounter,
    AttributedFields,
    AttributedMap,
    AttributedRegister,
    AttributedSet,
    AttributedText,
    AttributedValue,
)
from watchroom.model import Json
from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.drawing import Cell, Drawing
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span, cut, width_of
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

_NAME: Final = 14
_KEY: Final = 22
_BAR: Final = 24
_MAX_AGENTS: Final = 5
_MAX_CHARACTERS: Final = 2_000
"""Maximum number of characters of a value in its row."""
_NS_PER_MS: Final = 1_000_000
_NEW: Final = Span("▌", "accent")
_GUTTER: Final = 2


class DocumentRow(NamedTuple):
    """A row. ``field`` and ``key`` identify the row after an update. ``foot`` has details."""

    field: str
    key: str
    text: Line
    is_new: bool = False
    foot: str = ""


class DocumentDrawing(Drawing):
    """The rows of a document."""

    def __init__(self, picture: AttributedFields, schema: Mapping[str, FieldType], texts: Catalogue) -> None:
        self.rows: list[DocumentRow] = []
        for name, kind in schema.items():
            if self.rows:
                self.rows.append(DocumentRow(name, "", ()))
            self.rows += _Field(name, kind, texts).rows(picture)
        self._plain_texts = [_plain_text(row) for row in self.rows]
        self.new_rows = sum(row.is_new for row in self.rows)
        """Number of rows with new parts."""
        lengths = (len(said) if said.isascii() else 2 * len(said) for said in self._plain_texts)
        self._longest = max(lengths, default=0)

    def __len__(self) -> int:
        return len(self.rows)

    def moved(self, before: Drawing, anchor: int) -> int | None:
        """Return the current index of a row of an earlier drawing. Return the nearest row with the same text,
        else the row with the same key, else None."""
        if not isinstance(before, DocumentDrawing):
            return None
        row = before.rows[anchor]
        says = _plain_text(row)
        found = [
            index
            for index, said in enumerate(self._plain_texts)
            if said == says and self.rows[index].field == row.field
        ]
        if found:
            return min(found, key=lambda index: abs(index - anchor))
        keys = [(each.field, each.key) for each in self.rows]
        return keys.index((row.field, row.key)) if (row.field, row.key) in keys else None

    def gutter(self, index: int) -> int:
        return _GUTTER

    def longest(self) -> int:
        return self._longest

    def foot(self, index: int) -> str:
        return self.rows[index].foot

    def cell_texts(self, index: int) -> Sequence[str]:
        return [self._plain_texts[index]]

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        row = self.rows[index]
        return [Cell([_NEW if row.is_new else Span(" "), Span(" ")], cut(row.text, 0, 4 * reach))]


def _plain_text(row: DocumentRow) -> str:
    return "".join(span.text for span in row.text)


class _Field(NamedTuple):
    name: str
    kind: FieldType
    texts: Catalogue

    def rows(self, picture: AttributedFields) -> Iterator[DocumentRow]:
        field = picture[self.name]
        if isinstance(field, AttributedRegister):
            return self._register(field)
        if isinstance(field, AttributedText):
            return self._text(field)
        if isinstance(field, AttributedSet):
            return self._set(field)
        if isinstance(field, AttributedMap):
            return self._map(field)
        return self._counter(field)

    def _head(self, said: Sequence[Span] = ()) -> DocumentRow:
        kind = self.texts(f"documents.type.{self.kind}")
        line = [Span(sanitize(self.name), "title"), Span(f"  {kind}", "dim")]
        return DocumentRow(self.name, "head", [*line, Span("  "), *said] if said else line)

    def _register(self, field: AttributedRegister) -> Iterator[DocumentRow]:
        written = field.written
        if written is None:
            yield self._head([Span(self.texts("documents.not_written"), "dim")])
            return
        yield self._head(_author_spans(written))
        for number, line in enumerate(_lines(written.value)):
            yield DocumentRow(self.name, f"{number}", [Span(line)], written.is_new, self._written(written))

    def _written(self, value: AttributedValue) -> str:
        return self.texts(
            "documents.written", agent=sanitize(value.agent), time=local_clock(value.time * _NS_PER_MS)
        )

    def _text(self, field: AttributedText) -> Iterator[DocumentRow]:
        yield self._head(self._authors(field))
        runs = field.runs or (TextRun(len(field.text), ""),) * bool(field.text)
        for number, pieces in enumerate(_lines_of(field.text, runs)):
            authors = ", ".join(dict.fromkeys(sanitize(run.agent) for _, run in pieces if run.agent))
            spans = [Span(sanitize(text), _style(run)) for text, run in pieces]
            is_new = any(run.is_new for _, run in pieces)
            yield DocumentRow(self.name, f"{number}", spans, is_new, authors)

    def _authors(self, field: AttributedText) -> list[Span]:
        """Return the length of the text and the share of each author, in the author's colour."""
        said = [Span(self.texts("documents.characters", count=f"{len(field.text):,}"), "dim")]
        if field.text and not field.runs:
            return [*said, Span("  " + self.texts("documents.not_blamed"), "dim")]
        amounts: dict[str, int] = {}
        for run in field.runs:
            amounts[run.agent] = amounts.get(run.agent, 0) + run.length
        for agent in sorted(amounts, key=lambda each: -amounts[each])[:_MAX_AGENTS]:
            share = round(100 * amounts[agent] / len(field.text))
            said.append(Span(f"  ▍{sanitize(agent) or '?'} {share} %", agent_class(agent)))
        return said

    def _set(self, field: AttributedSet) -> Iterator[DocumentRow]:
        yield self._head([Span(f"{len(field.elements):,}", "dim")])
        for element in field.elements:
            who = ", ".join(map(sanitize, element.agents))
            line = [Span("• "), Span(sanitize(element.text)), Span("  "), *_names(element.agents)]
            yield DocumentRow(self.name, element.text, line, element.is_new, who)
        yield from self._removed(field.removed)

    def _map(self, field: AttributedMap) -> Iterator[DocumentRow]:
        yield self._head([Span(f"{len(field.entries):,}", "dim")])
        width = min(_KEY, max((width_of([Span(sanitize(key))]) for key in field.entries), default=0)) + 1
        for key, value in field.entries.items():
            first, *more = _lines(value.value)
            line = [
                Span(fit(sanitize(key), width) + " ", "key"),
                Span(first),
                Span("  "),
                *_author_spans(value),
            ]
            foot = self._written(value)
            yield DocumentRow(self.name, key, line, value.is_new, foot)
            for number, text in enumerate(more, start=1):
                shown = [Span(" " * (width + 1)), Span(text)]
                yield DocumentRow(self.name, f"{key}\0{number}", shown, value.is_new, foot)
        yield from self._removed(field.removed)

    def _removed(self, removed: Sequence[str]) -> Iterator[DocumentRow]:
        for each in removed:
            line = [Span("− ", "removed"), Span(sanitize(each), "removed")]
            yield DocumentRow(self.name, f"-{each}", line, True, self.texts("documents.removed"))

    def _counter(self, field: AttributedCounter) -> Iterator[DocumentRow]:
        yield self._head([Span(f"{field.value:,}", "strong")])
        most = max((share.up + share.down for share in field.shares), default=0)
        for share in field.shares:
            style = agent_class(share.agent)
            length = max(1, round(_BAR * (share.up + share.down) / most)) if most else 0
            down = f" −{share.down:,}" if share.down else ""
            line = [
                Span(fit(sanitize(share.agent), _NAME) + " ", style),
                Span(fit(f"+{share.up:,}{down}", 12, "right") + "  "),
                Span("█" * length, style),
            ]
            yield DocumentRow(self.name, share.agent, line, share.is_new)


def _style(run: TextRun) -> str:
    return agent_class(run.agent, "-new" if run.is_new else "") if run.agent else ""


def _author_spans(value: AttributedValue) -> list[Span]:
    time = local_clock(value.time * _NS_PER_MS)
    return [Span(sanitize(value.agent), agent_class(value.agent)), Span(f" {time}", "dim")]


def _names(agents: Sequence[str]) -> list[Span]:
    spans: list[Span] = []
    for agent in agents:
        spans += [Span(", ", "dim")] * bool(spans) + [Span(sanitize(agent), agent_class(agent))]
    return spans


def _lines(value: Json) -> list[str]:
    """Return a value as sanitized lines. Texts are unchanged, other values are JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return sanitize_lines(text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…")


def _lines_of(text: str, runs: Sequence[TextRun]) -> list[list[tuple[str, TextRun]]]:
    """Return the lines of the text. Each line consists of pieces by one author."""
    lines: list[list[tuple[str, TextRun]]] = [[]]
    at = 0
    for run in runs:
        for number, piece in enumerate(text[at : at + run.length].split("\n")):
            if number:
                lines.append([])
            if piece:
                lines[-1].append((piece, run))
        at += run.length
    return lines if text else []
