"""Responses and buffers as Markdown (EDIT-6), each at two levels: Basic for earlier ones, and Detail.
Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.editing.editor import TextEditor
from watchroom.editing.response import TextEditCandidate, TextEditResponse, TextEditStatus
from watchroom.editing.selections import Selections, insert_markers, marker_pair
from watchroom.texts import Catalogue, Language, catalogue

MOST_SHOWN: Final = 20_000
"""So many characters of a buffer are shown at most; of a longer one, what surrounds its selections (the two
ends of each, where they are long), or its beginning and its end."""
_SLACK: Final = 2_000
"""What fences, marks and the words between parts of a text take at most, where backticks are few."""
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
    """The same content in short and in full (EDIT-2.2)."""

    basic: str
    detail: str


def render(response: TextEditResponse, language: Language = "en") -> LevelOfDetail:
    """``response`` as Markdown in ``language``: header, overview, metrics, candidates (EDIT-6.1)."""
    texts = catalogue(language)
    empty = texts("editing.label.empty")
    guidance = response.guidance or empty
    flags = ", ".join(f"`{name}`" for name in response.flags.names) or "-"
    overview = texts("editing.label.overview")
    said = f"- summary: {_single_line(response.summary)}\n- guidance: {_single_line(guidance)}"
    metrics = response.metrics
    rows: list[tuple[str, ...]] = [
        ("delta", f"{metrics.delta:+}" if metrics.delta else "0"),
        ("new_length", str(metrics.new_length)),
        ("selection_count", "-" if metrics.selection_count is None else str(metrics.selection_count)),
    ]
    parts = [
        f"status: `{response.status}`\nstate: `{response.workflow_state}`\nflags: {flags}",
        f"### {_LABELS[response.status]} {overview}\n{said}",
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


def render_buffer(editor: TextEditor, language: Language = "en", most: int = MOST_SHOWN) -> LevelOfDetail:
    """The buffer of ``editor`` as Markdown in ``language``, as a model sees it before its turn (EDIT-7.2):
    at most about ``most`` characters of its text, with the selections marked in it, and a legend of the
    marks."""
    texts = catalogue(language)
    text, selections = editor.snapshot(), editor.selections
    values = {
        "buffer": editor.name,
        "version": editor.version,
        "length": len(text),
        "lines": text.count("\n") + 1,
    }
    basic = texts("editing.buffer.line", state=editor.state, **values)
    parts = [f"### [Buffer] {basic}", _render_text(text, selections, most, texts)]
    if selections is not None:
        parts.append(_render_legend(selections, texts))
    return LevelOfDetail(basic, "\n\n".join(parts) + "\n")


def _render_text(text: str, selections: Selections | None, most: int, texts: Catalogue) -> str:
    shown = _render_windows(text, selections, most, texts)
    if len(shown) > most + _SLACK:
        # Fences are as long as the longest run of backticks in what they surround, on either side.
        shown = _render_windows(text, selections, most // 3, texts)
    return shown


def _render_windows(text: str, selections: Selections | None, most: int, texts: Catalogue) -> str:
    windows = [(0, len(text))] if len(text) <= most else _choose_windows(text, selections, most)
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


def _choose_windows(text: str, selections: Selections | None, most: int) -> list[tuple[int, int]]:
    """The parts to show of a long text, in order, none touching another, with ``most`` characters in all."""
    if selections is None:
        return [(0, most // 2), (len(text) - most // 2, len(text))]
    room, length = most // len(selections.starts), len(selections.needle)
    spans: list[tuple[int, int]] = []
    for begins in selections.starts:
        ends = begins + length
        if length <= room // 2:
            around = (room - length) // 2
            spans.append((begins - around, ends + around))
        else:
            # Of a match that is too long to be shown, both its ends are, each with what surrounds it.
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
        opening, closing = marker_pair(selections.tag, number)
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
    """A text as code within a table: as many backticks around it as it takes."""
    ticks = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    space = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("|", "\\|")


def _code_block(text: str, kind: str) -> str:
    """A text as a block, fenced by more backticks than stand in it."""
    fence = "`" * max(3, max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{kind}\n{text}{end}{fence}"


def _single_line(text: str) -> str:
    return " ".join(text.split("\n"))
