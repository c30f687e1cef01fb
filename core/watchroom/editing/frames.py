"""The two passes before each question to a model (EDIT-7.2): everything is updated first and rendered
then, so that buffers and sources are shown as of one moment. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.editing.data_source_binding import DataSourceBinding
from watchroom.editing.editor import TextEditor
from watchroom.editing.markdown import MOST_SHOWN, LevelOfDetail, render_buffer
from watchroom.editing.tool_visibility import list_tool_names
from watchroom.errors import WatchroomError
from watchroom.texts import Language

_LEAST_SHOWN: Final = 1000
"""A buffer of which no more than this could be shown is named only."""


class BoundEditor(NamedTuple):
    """An ``editor`` and its ``binding``, if it has one."""

    editor: TextEditor
    binding: DataSourceBinding | None = None


class Frame(NamedTuple):
    """What a model is shown of one buffer ``name``, and the tools that it has for it."""

    name: str
    shown: LevelOfDetail
    tools: tuple[str, ...]


def build_frames(
    buffers: Sequence[BoundEditor], language: Language = "en", most: int = MOST_SHOWN
) -> tuple[Frame, ...]:
    """Both passes over ``buffers``; returns a frame for each, in ``language``. Together they show ``most``
    characters of their texts, the first ones first; a buffer that has no room left is only named. A source
    that cannot be read is reported in its frame."""
    problems = refresh_buffers(buffers)
    shown: list[Frame] = []
    for each, problem in zip(buffers, problems, strict=True):
        shown.append(_build_frame(each, problem, language, max(0, most)))
        most -= len(each.editor.snapshot())
    return tuple(shown)


def refresh_buffers(buffers: Sequence[BoundEditor]) -> list[WatchroomError | None]:
    """Bring ``buffers`` up to date (EDIT-7.2). Returns for each why its source could not be read, None if
    it could."""
    problems: list[WatchroomError | None] = []
    for editor, binding in buffers:
        editor.update()
        problems.append(_update_binding(binding) if binding is not None else None)
    return problems


def _update_binding(binding: DataSourceBinding) -> WatchroomError | None:
    try:
        binding.update()
    except WatchroomError as error:
        return error
    return None


def _build_frame(buffer: BoundEditor, problem: WatchroomError | None, language: Language, most: int) -> Frame:
    editor, binding = buffer
    shown = render_buffer(editor, language, most)
    if most < _LEAST_SHOWN and len(editor.snapshot()) > most:
        shown = LevelOfDetail(shown.basic, f"### [Buffer] {shown.basic}\n")
    syncing = None
    if binding is not None:
        notice = binding.notice(problem)
        shown = LevelOfDetail(f"{shown.basic}\n{notice}", f"{shown.detail}\n{notice}\n")
        syncing = binding.state
    return Frame(editor.name, shown, list_tool_names(editor.name, editor.state, syncing))
