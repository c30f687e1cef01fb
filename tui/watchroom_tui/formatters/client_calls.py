"""A call of a client's own tool as lines: the changes, or the arguments and the result. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom.features.overview.client_files import ClientFile
from watchroom.features.overview.reads import ClientCallText
from watchroom.features.reverts.rules import ClientEdit
from watchroom.texts import Catalogue

from watchroom_tui.formatters.labels import CLIENT_MARK
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.transcript import format_json
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

MAX_LINES: Final = 2000
_MAX_LISTED: Final = 200
_STYLES: Final = {"+": "added", "-": "removed", "@": "header-line"}


def client_call_lines(text: ClientCallText, texts: Catalogue) -> list[Line]:
    """Return the lines of a call's difference, or of its arguments and result if it has no difference."""
    if text.difference:
        # The title contains the names of the files.
        told = [line for line in sanitize_lines(text.difference) if not line.startswith(("--- ", "+++ "))]
        return _bounded([[Span(f" {line}", _STYLES.get(line[:1], ""))] for line in told])
    lines: list[Line] = [[Span(f" {line}")] for line in sanitize_lines(format_json(text.arguments))]
    if text.result:
        lines.append([Span(f" {texts('session.gave')}", "dim")])
        lines += [[Span(f" {line}")] for line in sanitize_lines(format_json(text.result))]
    return _bounded(lines)


def client_file_lines(file: ClientFile, text: ClientCallText, texts: Catalogue) -> list[Line]:
    """Return lines with the agents that edited ``file``, and ``text``, the newest edit of the file."""
    who = ", ".join(map(sanitize, file.agents))
    about = texts("files.by_client", count=file.edits, agents=who)
    return [[Span(" "), Span(about, "dim")], [], *client_call_lines(text, texts)]


def client_edit_lines(edits: Sequence[ClientEdit], texts: Catalogue) -> list[str]:
    """Return one line for each of the first ``edits``, and the number of the others. The lines are safe to
    print."""
    lines = [
        sanitize(f"{CLIENT_MARK} {each.path}  {each.agent} ×{each.times}") for each in edits[:_MAX_LISTED]
    ]
    more = len(edits) - len(lines)
    return [*lines, texts("revert.more", count=more)] if more else lines


def _bounded(lines: list[Line]) -> list[Line]:
    return lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], [Span(" …", "dim")]]
