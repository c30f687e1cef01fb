"""An open buffer on the screen: its text with the choice that is open, and what it changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from watchroom.merge import split_lines
from watchroom.projections import BufferView
from watchroom.texts import Catalogue

from watchroom_tui.buffer_reading import BufferReading, Choice, read_buffer
from watchroom_tui.columns import fit
from watchroom_tui.comparing import Compared, Comparison
from watchroom_tui.safe import safe
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.buffer_list import CHOICE_MARK, MARKS, source_of
from watchroom_tui.widgets.drawing_view import DrawingView

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp

SOUGHT_WIDTH = 30


async def reading_of(app: WatchroomApp, buffer: BufferView) -> BufferReading:
    """What stands in the buffer."""
    return await asyncio.to_thread(read_buffer, app.journal, buffer.row)


def show_text(app: WatchroomApp, view: DrawingView, buffer: BufferView, reading: BufferReading) -> None:
    """Show the text, with the places marked that wait for a choice."""
    head = _choice_lines(reading.choice, app.words) if reading.choice else ()
    title = title_of(buffer, app.words)
    if not reading.shown:
        view.show_words(buffer.path, [[], [Span(f" {app.words('buffers.nothing')}", "dim")]], title=title)
        return
    view.show_text(buffer.path, reading.shown, title=title, head=head, marks=reading.marks)


async def show_changes(
    app: WatchroomApp, view: DrawingView, buffer: BufferView, reading: BufferReading, title: str
) -> None:
    """Show what the buffer changes in the text that it is based on."""
    words = app.words
    changed = await app.worker_process.changes(reading.base, reading.text)
    if not changed:
        said = words("buffers.no_changes")
        view.show_words(buffer.path, [[], [Span(f" {said}", "dim")]], title=title)
        return
    compared = Compared(split_lines(reading.base), split_lines(reading.text), changed)
    drawing = await asyncio.to_thread(Comparison, compared, side_by_side=False)
    view.show_drawing(buffer.path, drawing, title=title)


def title_of(buffer: BufferView, words: Catalogue) -> str:
    """The buffer in a line: its name, how it stands, and to which version of what."""
    return " · ".join((f"{MARKS[buffer.state].text} {safe(buffer.name)}", standing(buffer, words)))


def standing(buffer: BufferView, words: Catalogue) -> str:
    """How a buffer stands to its source, with the versions."""
    return words(
        f"buffers.standing.{buffer.state}",
        source=safe(source_of(buffer)),
        base=buffer.record.base,
        newest=buffer.newest,
    )


def _choice_lines(choice: Choice, words: Catalogue) -> list[Line]:
    old, new = (fit(safe(each), SOUGHT_WIDTH).rstrip() for each in (choice.old, choice.new))
    more = choice.places - choice.marked
    said = words("buffers.choice", old=old, new=new, count=choice.places)
    if more:
        said = f"{said} {words('buffers.not_offered', count=more)}"
    return [[Span(" "), CHOICE_MARK, Span(f" {said}")], []]
