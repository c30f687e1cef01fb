"""Show an open buffer: its text with the pending choice, and its unwritten changes."""

from __future__ import annotations

import asyncio

from watchroom.algorithms.merge import split_lines
from watchroom.features.buffers.view import BufferView
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.diff_drawing import DiffDrawing, DiffInput
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.buffer import BufferSnapshot, PendingChoice, read_buffer
from watchroom_tui.screens.agents.buffer_list import CHOICE_MARK, MARKS, source_of
from watchroom_tui.widgets.text_pane import TextPane

SOUGHT_WIDTH = 30


async def reading_of(app: Dashboard, buffer: BufferView) -> BufferSnapshot:
    """Return the content of the buffer, read in a thread."""
    return await asyncio.to_thread(read_buffer, app.journal, buffer.row)


def show_text(app: Dashboard, view: TextPane, buffer: BufferView, reading: BufferSnapshot) -> None:
    """Show the text, and mark the places of a pending choice."""
    head = _choice_lines(reading.choice, app.texts) if reading.choice else ()
    title = title_of(buffer, app.texts)
    if not reading.shown:
        view.show_notice(buffer.path, [[], [Span(f" {app.texts('buffers.nothing')}", "dim")]], title=title)
        return
    view.show_text(buffer.path, reading.shown, title=title, head=head, marks=reading.marks)


async def show_changes(
    app: Dashboard, view: TextPane, buffer: BufferView, reading: BufferSnapshot, title: str
) -> None:
    """Show the changes in the buffer, compared with the text that it is based on."""
    texts = app.texts
    changed = await app.worker_process.changes(reading.base, reading.text)
    if not changed:
        said = texts("buffers.no_changes")
        view.show_notice(buffer.path, [[], [Span(f" {said}", "dim")]], title=title)
        return
    compared = DiffInput(split_lines(reading.base), split_lines(reading.text), changed)
    drawing = await asyncio.to_thread(DiffDrawing, compared, side_by_side=False)
    view.show_drawing(buffer.path, drawing, title=title)


def title_of(buffer: BufferView, texts: Catalogue) -> str:
    """Return a title: the buffer's name, its source, and the difference between them with the versions."""
    return " · ".join((f"{MARKS[buffer.state].text} {sanitize(buffer.name)}", standing(buffer, texts)))


def standing(buffer: BufferView, texts: Catalogue) -> str:
    """Return a text about the difference between a buffer and its source, with the versions."""
    return texts(
        f"buffers.standing.{buffer.state}",
        source=sanitize(source_of(buffer)),
        base=buffer.record.base,
        newest=buffer.newest,
    )


def _choice_lines(choice: PendingChoice, texts: Catalogue) -> list[Line]:
    old, new = (fit(sanitize(each), SOUGHT_WIDTH).rstrip() for each in (choice.old, choice.new))
    more = choice.places - choice.marked
    said = texts("buffers.choice", old=old, new=new, count=choice.places)
    if more:
        said = f"{said} {texts('buffers.not_offered', count=more)}"
    return [[Span(" "), CHOICE_MARK, Span(f" {said}")], []]
