"""Format a request, with what its calls would change, as lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.model import Json
from watchroom.projections.proposals import Proposal
from watchroom.queries.requests import RequestDetails
from watchroom.rules.requests import PendingCall, parse_arguments
from watchroom.texts import Catalogue

from watchroom_tui.formatters.labels import tool_name
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.transcript import format_json
from watchroom_tui.sanitize import sanitize, sanitize_lines
from watchroom_tui.theme import agent_class
from watchroom_tui.worker.main import DiffLine

MOST_LINES: Final = 2000
"""So many lines of what a call would change are shown."""

_LINE_STYLES: Final = {
    "added": ("+", "added"),
    "removed": ("−", "removed"),
    "same": (" ", ""),
    "hunk": ("", "dim"),
}


def request_lines(
    details: RequestDetails, changes: Sequence[Sequence[DiffLine] | None], texts: Catalogue
) -> list[Line]:
    """The request as people read it; ``changes`` are those that each call would make."""
    asked, request = details.asked, details.request
    lines: list[Line] = [
        [
            Span(" "),
            Span(sanitize(asked.agent), agent_class(asked.agent)),
            Span(f" {texts(f'request.wants.{request.kind}')}", "dim"),
            Span(f"  #{asked.id}", "dim"),
        ],
        [],
    ]
    if request.prompt:
        lines += [[Span(" "), Span(line, "strong")] for line in sanitize_lines(request.prompt)]
        lines.append([])
    if request.options:
        lines += [[Span("  · ", "dim"), Span(sanitize(option.label))] for option in request.options]
        lines.append([])
    for call, would, changed in zip(request.calls, details.proposals, changes, strict=True):
        lines += _call_lines(call, would, changed, texts, is_outdated=call.id in details.outdated)
    if details.asked.ended is not None:
        lines += _answer_lines(details, texts)
    return lines


def _call_lines(
    call: PendingCall,
    would: Proposal | None,
    changed: Sequence[DiffLine] | None,
    texts: Catalogue,
    *,
    is_outdated: bool,
) -> list[Line]:
    lines: list[Line] = [
        [
            Span(" "),
            Span(sanitize(tool_name(call.name, texts)), "title"),
            Span(f"  {sanitize(call.name)}", "dim"),
        ]
    ]
    given = _without_text(call, would)
    lines += [[Span("   "), Span(sanitize(line))] for line in pretty_lines(given)]
    if would is not None:
        if is_outdated and not would.is_stale:
            lines.append([Span("   "), Span(texts("request.outdated"), "warning")])
        lines += _proposal_lines(would, changed or (), texts)
    lines.append([])
    return lines


def _proposal_lines(would: Proposal, changed: Sequence[DiffLine], texts: Catalogue) -> list[Line]:
    head = would.head
    current = (
        texts("request.current", version=head.version, who=sanitize(head.actor))
        if head
        else texts("request.new")
    )
    lines: list[Line] = [[], [Span("   "), Span(sanitize(would.path), "strong"), Span(f"  {current}", "dim")]]
    if would.is_stale:
        version = (head.version or 0) if head else 0
        text = texts("request.stale", expected=would.expected, current=version)
        lines.append([Span("   "), Span(text, "warning")])
    if not changed:
        lines.append([Span("   "), Span(texts("request.no_changes"), "dim")])
    for line in _without_start(changed)[:MOST_LINES]:
        sign, style = _LINE_STYLES[line.kind]
        number = line.new if line.kind != "removed" else line.old
        shown = f"{number:>5} " if line.kind != "hunk" else "      "
        text = "⋯" if line.kind == "hunk" else sanitize(line.text)
        gutter = Span(f" {shown}{sign} ", style if line.kind in ("added", "removed") else "number")
        lines.append([gutter, Span(text, style)])
    if len(changed) > MOST_LINES:
        lines.append([Span("   "), Span(texts("request.more", count=len(changed) - MOST_LINES), "dim")])
    return lines


def _answer_lines(details: RequestDetails, texts: Catalogue) -> list[Line]:
    ended = details.asked.ended
    if ended is None:
        return []
    outcome = texts(f"request.outcome.{details.asked.outcome}")
    lines: list[Line] = [
        [
            Span(" "),
            Span(outcome, "title"),
            Span(f"  {sanitize(ended.actor)} · {zoned_time(ended.time)}", "dim"),
        ]
    ]
    answer = details.answer
    if answer is not None:
        said = [answer.text, *answer.values, *(each.reason for each in answer.decisions)]
        for text in said:
            lines += [[Span("   "), Span(line)] for line in sanitize_lines(text) if text]
        for decision in answer.decisions:
            if decision.arguments is not None:
                lines.append([Span("   "), Span(texts("request.edited_to"), "dim")])
                lines += [
                    [Span("   "), Span(sanitize(line))]
                    for line in pretty_lines(parse_arguments(decision.arguments))
                ]
    return lines


def _without_text(call: PendingCall, would: Proposal | None) -> Mapping[str, Json]:
    """The arguments, without the text that the changes below show anyway."""
    given = parse_arguments(call.arguments)
    return {
        name: value for name, value in given.items() if would is None or value != would.after or not value
    }


def pretty_lines(arguments: Mapping[str, Json]) -> list[str]:
    return format_json(json.dumps(arguments, ensure_ascii=False)).split("\n") if arguments else []


def _without_start(changed: Sequence[DiffLine]) -> Sequence[DiffLine]:
    """Without the mark that lines are left out, where none are: at the start."""
    starts = changed and changed[0].kind == "hunk" and max(changed[0].old, changed[0].new) <= 1
    return changed[1:] if starts else changed
