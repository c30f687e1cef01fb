"""What a person must know to answer a request, as lines: what is asked, and what the calls would change."""

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
from watchroom_tui.safe import safe, safe_lines
from watchroom_tui.spans import Line, Span
from watchroom_tui.theme import agent_class
from watchroom_tui.transcript import pretty
from watchroom_tui.work import DiffLine

MOST_LINES: Final = 2000
"""So many lines of what a call would change are shown."""

_LINE_STYLES: Final = {
    "added": ("+", "added"),
    "removed": ("−", "removed"),
    "same": (" ", ""),
    "hunk": ("", "dim"),
}


class AskedInFull(NamedTuple):
    """A request with what was asked, what its calls would write (None: nothing), and the answer, if any.
    ``outdated`` are the ids of the calls that would write something else by now than when they were asked
    about."""

    asked: RequestView
    request: Request
    proposals: tuple[Proposal | None, ...]
    answer: Answer | None
    outdated: frozenset[str] = frozenset()


def read_request(journal: Journal, asked: RequestView) -> AskedInFull:
    """Reads the journal: not for the event loop."""
    request = parse_request(journal.content(asked.row.seq) or "{}")
    proposals = tuple(
        proposal(journal, asked.agent, call.name, parse_arguments(call.arguments)) for call in request.calls
    )
    text = journal.content(asked.ended.seq) if asked.ended else None
    outdated = frozenset() if text else frozenset(_outdated(journal, asked.agent, request))
    return AskedInFull(asked, request, proposals, parse_answer(text) if text else None, outdated)


def _outdated(journal: Journal, agent: str, request: Request) -> Iterator[str]:
    for call in request.calls:
        arguments = parse_arguments(call.arguments)
        if call.checksum and call.checksum != approval_checksum(journal, agent, call.name, arguments):
            yield call.id


def request_lines(
    full: AskedInFull, changes: Sequence[Sequence[DiffLine] | None], words: Catalogue
) -> list[Line]:
    """The request as people read it; ``changes`` are those that each call would make."""
    asked, request = full.asked, full.request
    lines: list[Line] = [
        [
            Span(" "),
            Span(safe(asked.agent), agent_class(asked.agent)),
            Span(f" {words(f'request.wants.{request.kind}')}", "dim"),
            Span(f"  #{asked.id}", "dim"),
        ],
        [],
    ]
    if request.prompt:
        lines += [[Span(" "), Span(line, "strong")] for line in safe_lines(request.prompt)]
        lines.append([])
    if request.options:
        lines += [[Span("  · ", "dim"), Span(safe(option.label))] for option in request.options]
        lines.append([])
    for call, would, changed in zip(request.calls, full.proposals, changes, strict=True):
        lines += _call_lines(call, would, changed, words, is_outdated=call.id in full.outdated)
    if full.asked.ended is not None:
        lines += _answer_lines(full, words)
    return lines


def _call_lines(
    call: PendingCall,
    would: Proposal | None,
    changed: Sequence[DiffLine] | None,
    words: Catalogue,
    *,
    is_outdated: bool,
) -> list[Line]:
    lines: list[Line] = [
        [Span(" "), Span(safe(tool_name(call.name, words)), "title"), Span(f"  {safe(call.name)}", "dim")]
    ]
    given = _without_text(call, would)
    lines += [[Span("   "), Span(safe(line))] for line in pretty_lines(given)]
    if would is not None:
        if is_outdated and not would.is_stale:
            lines.append([Span("   "), Span(words("request.outdated"), "warning")])
        lines += _proposal_lines(would, changed or (), words)
    lines.append([])
    return lines


def _proposal_lines(would: Proposal, changed: Sequence[DiffLine], words: Catalogue) -> list[Line]:
    head = would.head
    current = (
        words("request.current", version=head.version, who=safe(head.actor)) if head else words("request.new")
    )
    lines: list[Line] = [[], [Span("   "), Span(safe(would.path), "strong"), Span(f"  {current}", "dim")]]
    if would.is_stale:
        version = (head.version or 0) if head else 0
        text = words("request.stale", expected=would.expected, current=version)
        lines.append([Span("   "), Span(text, "warning")])
    if not changed:
        lines.append([Span("   "), Span(words("request.no_changes"), "dim")])
    for line in _without_start(changed)[:MOST_LINES]:
        sign, style = _LINE_STYLES[line.kind]
        number = line.new if line.kind != "removed" else line.old
        shown = f"{number:>5} " if line.kind != "hunk" else "      "
        text = "⋯" if line.kind == "hunk" else safe(line.text)
        gutter = Span(f" {shown}{sign} ", style if line.kind in ("added", "removed") else "number")
        lines.append([gutter, Span(text, style)])
    if len(changed) > MOST_LINES:
        lines.append([Span("   "), Span(words("request.more", count=len(changed) - MOST_LINES), "dim")])
    return lines


def _answer_lines(full: AskedInFull, words: Catalogue) -> list[Line]:
    ended = full.asked.ended
    if ended is None:
        return []
    outcome = words(f"request.outcome.{full.asked.outcome}")
    lines: list[Line] = [
        [Span(" "), Span(outcome, "title"), Span(f"  {safe(ended.actor)} · {zoned_time(ended.time)}", "dim")]
    ]
    answer = full.answer
    if answer is not None:
        said = [answer.text, *answer.values, *(each.reason for each in answer.decisions)]
        for text in said:
            lines += [[Span("   "), Span(line)] for line in safe_lines(text) if text]
        for decision in answer.decisions:
            if decision.arguments is not None:
                lines.append([Span("   "), Span(words("request.edited_to"), "dim")])
                lines += [
                    [Span("   "), Span(safe(line))]
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
    return pretty(json.dumps(arguments, ensure_ascii=False)).split("\n") if arguments else []


def _without_start(changed: Sequence[DiffLine]) -> Sequence[DiffLine]:
    """Without the mark that lines are left out, where none are: at the start."""
    starts = changed and changed[0].kind == "hunk" and max(changed[0].old, changed[0].new) <= 1
    return changed[1:] if starts else changed
