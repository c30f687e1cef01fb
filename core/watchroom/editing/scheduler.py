"""The two passes before each question to a model (spec 4 §7.2): everything is brought up to date first, and
then shown, so that buffers and sources are seen as of one moment. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from watchroom.editing.binding import DataSourceBinding
from watchroom.editing.editor import TextEditor
from watchroom.editing.matrix import tool_names
from watchroom.editing.rendering import LevelOfDetail, render_buffer
from watchroom.texts import Language


class OpenBuffer(NamedTuple):
    """An editor and what it is bound to, if to anything."""

    editor: TextEditor
    binding: DataSourceBinding | None = None


class Frame(NamedTuple):
    """What a model is shown of one buffer, and the tools that it has for it."""

    name: str
    shown: LevelOfDetail
    tools: tuple[str, ...]


def frames(buffers: Sequence[OpenBuffer], language: Language = "en") -> tuple[Frame, ...]:
    """Run both passes over these buffers. Raises `WatchroomError` where a source cannot be looked at."""
    for editor, binding in buffers:
        editor.update()
        if binding is not None:
            binding.update()
    return tuple(_frame(each, language) for each in buffers)


def _frame(buffer: OpenBuffer, language: Language) -> Frame:
    editor, binding = buffer
    shown = render_buffer(editor, language)
    syncing = None
    if binding is not None:
        notice = binding.notice()
        shown = LevelOfDetail(f"{shown.basic}\n{notice}", f"{shown.detail}\n{notice}\n")
        syncing = binding.state
    return Frame(editor.name, shown, tool_names(editor.name, editor.state, syncing))
