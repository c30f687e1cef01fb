"""The view for a model: responses and buffers as Markdown (EDIT-6), and the tools of each buffer (EDIT-7.2).

Markdown comes in two levels of detail: ``basic`` for earlier responses, and ``detail``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.algorithms.editing.data_source_binding import DataSourceBinding
from watchroom.algorithms.editing.editor import TextEditor
from watchroom.algorithms.editing.response import TextEditCandidate, TextEditResponse, TextEditStatus
from watchroom.algorithms.editing.selections import Selections, build_markers, insert_markers
from watchroom.algorithms.editing.tool_visibility import list_tool_names
from watchroom.errors import WatchroomError
from watchroom.texts import Catalogue, Language, catalogue

MAX_SHOWN: Final = 20_000
"""Maximum number of characters shown of a buffer.

For a longer buffer, the surroundings of the selections are shown, or its beginning and its end.
"""
_MIN_SHOWN: Final = 1000
"""Minimum number of shown characters. If less fits, only the buffer's name is shown."""
_SLACK: Final = 2_000
"""Characters added by fences, markers and the labels between parts, unless the text has many backticks."""
_LABELS: Final = {
    TextEditStatus.SUCCESS: "[OK]",
    TextEditStatus.NO_OP: "[OK]",
    TextEditStatus.MULTI_MATCH: "[Warning]",
    TextEditStatus.NO_MATCH: "[Warning]",
    TextEditStatus.EXTERNAL_CONFLICT: "[Warning]",
    TextEditStatus.PERSIST_FAILURE: "[Fail]",
    TextEditStatus.EXCEPTION: "[Fail]",
}
_COLUMNS: Final = ("Id", "MarkerStart", "MarkerEnd", "Preview", "Occurrence", "ContextStart", "ContextEnd")
_BACKTICKS: Final = re.compile("`+")


class LevelOfDetail(NamedTuple):
    """The same content in a short and in a full version (EDIT-2.2)."""

    basic: str
    detail: str


def render(response: TextEditResponse, language: Language = "en") -> LevelOfDetail:
    """Return ``response`` as Markdown: header, overview, metrics, candidates (EDIT-6.1)."""
    texts = catalogue(language)
    empty = texts("editing.label.empty")
    guidance = response.guidance or empty
    flags = ", ".join(f"`{name}`" for name in response.flags.names) or "-"
    overview = texts("editing.label.overview")
    report = f"- summary: {_single_line(response.summary)}\n- guidance: {_single_line(guidance)}"
    metrics = response.metrics
    rows: list[tuple[str, ...]] = [
        ("delta", f"{metrics.delta:+}" if metrics.delta else "0"),
        ("new_length", str(metrics.new_length)),
        ("selection_count", "-" if metrics.selection_count is None else str(metrics.selection_count)),
    ]
    parts = [
        f"status: `{response.status}`\nstate: `{response.workflow_state}`\nflags: {flags}",
        f"### {_LABELS[response.status]} {overview}\n{report}",
        f"### [Metrics] {texts('editing.label.metrics')}\n"
        + _render_table((texts("editing.label.metric"), texts("editing.label.value")), rows),
    ]
    if response.candidates:
        parts.append(
            f"### [Target] {texts('editing.label.candidates')}\n"
            + _render_table(_COLUMNS, [_candidate_row(each) for each in response.candidates])
        )
    if response.diff:
        parts.append(f"### [Diff] {texts('editing.label.diff')}\n" + _code_block(response.diff, "diff"))
    basic = "\n".join(
        (
            f"status: `{response.status}`",
            f"state: `{response.workflow_state}`",
            f"summary: {_single_line(response.summary)}",
            f"guidance: {_single_line(guidance)}",
        )
    )
    return LevelOfDetail(basic, "\n\n".join(parts) + "\n")


def render_buffer(editor: TextEditor, language: Language = "en", max_shown: int = MAX_SHOWN) -> LevelOfDetail:
    """Return the buffer of ``editor`` as Markdown for a model before its turn (EDIT-7.2).

    It contains about ``max_shown`` characters of the text, with markers at the selections and a legend.
    """
    texts = catalogue(language)
    text, selections = editor.snapshot(), editor.selections
    values = {
        "buffer": editor.name,
        "version": editor.version,
        "length": len(text),
        "lines": text.count("\n") + 1,
    }
    basic = texts("editing.buffer.line", state=editor.state, **values)
    parts = [f"### [Buffer] {basic}", _render_text(text, selections, max_shown, texts)]
    if selections is not None:
        parts.append(_render_legend(selections, texts))
    return LevelOfDetail(basic, "\n\n".join(parts) + "\n")


class BoundEditor(NamedTuple):
    """An ``editor`` with its ``binding``, None if it is not bound."""

    editor: TextEditor
    binding: DataSourceBinding | None = None


class Frame(NamedTuple):
    """The view of the buffer ``name`` for a model, and the names of the tools that it may call."""

    name: str
    shown: LevelOfDetail
    tools: tuple[str, ...]


def build_frames(
    buffers: Sequence[BoundEditor], language: Language = "en", max_shown: int = MAX_SHOWN
) -> tuple[Frame, ...]:
    """Update ``buffers``, then render a frame for each (EDIT-7.2).

    All buffers are updated before the first is rendered, so that all frames show the same moment. If a source
    cannot be read, its frame reports that.

    - ``language``: the language of the frames.
    - ``max_shown``: maximum characters in all frames together. Earlier buffers have priority; for a buffer
      without room, only its name is shown.
    """
    problems = refresh_buffers(buffers)
    frames: list[Frame] = []
    for each, problem in zip(buffers, problems, strict=True):
        frames.append(_build_frame(each, problem, language, max(0, max_shown)))
        max_shown -= len(each.editor.snapshot())
    return tuple(frames)


def refresh_buffers(buffers: Sequence[BoundEditor]) -> list[WatchroomError | None]:
    """Update ``buffers`` (EDIT-7.2). Return for each the reason why its source could not be read, None if it
    was read."""
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


def _build_frame(
    buffer: BoundEditor, problem: WatchroomError | None, language: Language, max_shown: int
) -> Frame:
    editor, binding = buffer
    shown = render_buffer(editor, language, max_shown)
    if max_shown < _MIN_SHOWN and len(editor.snapshot()) > max_shown:
        shown = LevelOfDetail(shown.basic, f"### [Buffer] {shown.basic}\n")
    syncing = None
    if binding is not None:
        notice = binding.notice(problem)
        shown = LevelOfDetail(f"{shown.basic}\n{notice}", f"{shown.detail}\n{notice}\n")
        syncing = binding.state
    return Frame(editor.name, shown, list_tool_names(editor.name, editor.state, syncing))


def _render_text(text: str, selections: Selections | None, max_shown: int, texts: Catalogue) -> str:
    shown = _render_windows(text, selections, max_shown, texts)
    if len(shown) > max_shown + _SLACK:
        # A fence is longer than the longest run of backticks in the text, at both ends.
        shown = _render_windows(text, selections, max_shown // 3, texts)
    return shown


def _render_windows(text: str, selections: Selections | None, max_shown: int, texts: Catalogue) -> str:
    windows = [(0, len(text))] if len(text) <= max_shown else _choose_windows(text, selections, max_shown)
    pieces: list[str] = []
    at = 0
    for start, end in windows:
        if start > at:
            pieces.append(texts("editing.buffer.left_out", count=start - at))
        shown = text[start:end] if selections is None else insert_markers(text, selections, start, end)
        pieces.append(_code_block(shown, "text"))
        at = end
    if at < len(text):
        pieces.append(texts("editing.buffer.left_out", count=len(text) - at))
    return "\n\n".join(pieces)


def _choose_windows(text: str, selections: Selections | None, max_shown: int) -> list[tuple[int, int]]:
    """Return the ranges of a long text to show: in order, separate, and ``max_shown`` characters in total."""
    if selections is None:
        return [(0, max_shown // 2), (len(text) - max_shown // 2, len(text))]
    room, length = max_shown // len(selections.starts), len(selections.needle)
    spans: list[tuple[int, int]] = []
    for begins in selections.starts:
        ends = begins + length
        if length <= room // 2:
            around = (room - length) // 2
            spans.append((begins - around, ends + around))
        else:
            # For a long match, both ends with their surroundings are shown.
            spans += [(edge - room // 4, edge + room // 4) for edge in (begins, ends)]
    windows: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
        else:
            windows.append((start, end))
    return [(max(0, start), min(len(text), end)) for start, end in windows]


def _render_legend(selections: Selections, texts: Catalogue) -> str:
    lines = [texts("editing.legend.head", count=selections.count, shown=len(selections.starts))]
    for number in range(1, len(selections.starts) + 1):
        opening, closing = build_markers(selections.tag, number)
        lines.append(f"- `{opening}`…`{closing}`: {texts('editing.legend.line', number=number)}")
    return "\n".join(lines)


def _candidate_row(candidate: TextEditCandidate) -> tuple[str, ...]:
    return (
        str(candidate.id),
        f"`{candidate.marker_start}`",
        f"`{candidate.marker_end}`",
        _inline_code(candidate.preview),
        str(candidate.occurrence),
        str(candidate.context_start),
        str(candidate.context_end),
    )


def _render_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inline_code(text: str) -> str:
    """Return ``text`` as inline code for a table, between enough backticks."""
    ticks = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    space = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("|", "\\|")


def _code_block(text: str, kind: str) -> str:
    """Return ``text`` as a code block, with a fence longer than any run of backticks in it."""
    fence = "`" * max(3, max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{kind}\n{text}{end}{fence}"


def _single_line(text: str) -> str:
    return " ".join(text.split("\n"))
