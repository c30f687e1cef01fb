"""Read a request with what its calls would change, and format it as lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.journal import Journal
from watchroom.model import Json
from watchroom.projections import RequestView
from watchroom.projections.proposals import Proposal, proposal
from watchroom.rules.requests import (
    Answer,
    PendingCall,
    Request,
    parse_answer,
    parse_arguments,
    parse_request,
)
from watchroom.texts import Catalogue
from watchroom.toolbox.approval import approval_checksum

from watchroom_tui.describe import tool_name
from watchroom_tui.local_time import zoned_time
from watchroom_tui.sanitize import sanitize, sanitize_lines
from watchroom_tui.services.worker_main import DiffLine
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.theme import agent_class
from watchroom_tui.transcript import format_json

MOST_LINES: Final = 2000
"""So many lines of what a call would change are shown."""

_LINE_STYLES: Final = {
    "added": ("+", "added"),
    "removed": ("−", "removed"),
    "same": (" ", ""),
    "hunk": ("", "dim"),
}


class RequestDetails(NamedTuple):
    """A request with what was asked, what its calls would write (None: nothing), and the answer, if any.
    ``outdated`` are the ids of the calls that would write something else by now than when they were asked
    about."""

    asked: RequestView
    request: Request
    proposals: tuple[Proposal | None, ...]
    answer: Answer | None
    outdated: frozenset[str] = frozenset()


def read_request(journal: Journal, asked: RequestView) -> RequestDetails:
    """Reads the journal: not for the event loop."""
    request = parse_request(journal.content(asked.row.seq) or "{}")
    proposals = tuple(
        proposal(journal, asked.agent, call.name, parse_arguments(call.arguments)) for call in request.calls
    )
    text = journal.content(asked.ended.seq) if asked.ended else None
    outdated = frozenset() if text else frozenset(_outdated(journal, asked.agent, request))
    return RequestDetails(asked, request, proposals, parse_answer(text) if text else None, outdated)


def _outdated(journal: Journal, agent: str, request: Request) -> Iterator[str]:
    for call in request.calls:
        arguments = parse_arguments(call.arguments)
        if call.checksum and call.checksum != approval_checksum(journal, agent, call.name, arguments):
            yield call.id


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
