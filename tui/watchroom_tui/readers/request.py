"""A request as lines, with the changes of its calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.calls.proposals import Proposal
from watchroom.features.calls.reads import RequestDetails
from watchroom.features.people.decisions import is_legacy, signing_key
from watchroom.features.requests.reviews import LineKey, Review, can_write_part
from watchroom.features.requests.rows import DIFFERENCE, POLICY_RULE, PendingCall, parse_arguments
from watchroom.kernel.rules.details import get_int
from watchroom.model import ANSWER, Json, Row
from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.drawing import Drawing
from watchroom_tui.formatters.labels import tool_name
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.text_drawing import TextDrawing
from watchroom_tui.formatters.transcript import format_json
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.worker.main import DiffLine

MAX_LINES: Final = 2000
"""Maximum number of lines for the changes of a call."""

_LINE_STYLES: Final = {
    "added": ("+", "added"),
    "removed": ("−", "removed"),
    "same": (" ", ""),
    "hunk": ("", "dim"),
}

_DIFF_STYLES: Final = {"+": "added", "-": "removed"}


class RequestRow(NamedTuple):
    """A row of a request.

    - ``call``: the id of the call, if the row is a line of the call's change.
    - ``key``: the key of the line in the review.
    - ``hunk``: the hunk of the line, None for an unchanged line.
    """

    line: Line
    call: str = ""
    key: LineKey | None = None
    hunk: int | None = None


class RequestDrawing(TextDrawing):
    """The ``rows`` of a request. The foot shows the state of the hunk under the cursor."""

    def __init__(self, rows: Sequence[RequestRow], reviews: Mapping[str, Review], texts: Catalogue) -> None:
        super().__init__(None, head=[row.line for row in rows])
        self._rows = rows
        self._reviews = reviews
        self._catalogue = texts
        self._starts = [index for index in range(len(rows)) if self._begins_hunk(index)]

    @property
    def is_reviewed(self) -> bool:
        """Whether the request has hunks to accept or decline."""
        return bool(self._starts)

    def _begins_hunk(self, index: int) -> bool:
        row = self._rows[index]
        before = self._rows[index - 1] if index else None
        return row.hunk is not None and (before is None or (before.call, before.hunk) != (row.call, row.hunk))

    def line_row(self, index: int) -> RequestRow:
        """Return the row at ``index``. If it is a row of a comment, return the row of the commented line."""
        row = self._rows[index]
        while index and (before := self._rows[index - 1]).key == row.key and before.call == row.call:
            index, row = index - 1, before
        return row

    def moved(self, before: Drawing, anchor: int) -> int | None:
        """Return the closest index of a row of an earlier drawing, None if the row is gone. Lines are found
        by key, other rows by text."""
        if not isinstance(before, RequestDrawing):
            return None
        row = before._rows[anchor]
        found = [
            index
            for index, each in enumerate(self._rows)
            if (each.call, each.key) == (row.call, row.key) and (row.key is not None or each.line == row.line)
        ]
        return min(found, key=lambda index: abs(index - anchor), default=None)

    def next_hunk(self, index: int, step: int) -> int | None:
        """Return the start of the next hunk from the row ``index``, or of the previous hunk if ``step`` is
        -1. None if there is no such hunk."""
        found = [each for each in self._starts if (each - index) * step > 0]
        return min(found, key=lambda each: abs(each - index), default=None)

    def foot(self, index: int) -> str:
        row = self._rows[index]
        if row.hunk is None:
            return ""
        review = self._reviews[row.call]
        key = "review.hunk_declined" if row.hunk in review.declined else "review.hunk_taken"
        return self._catalogue(key, number=row.hunk + 1, count=len(review.hunks))


class _CallHead(NamedTuple):
    """The lines above the changes of a call. ``divisible``: whether the call can be made with only some of
    its hunks."""

    lines: Sequence[Line]
    divisible: bool


class RequestPage:
    """The request ``details`` for people, with the changes of each call.

    Create it once per request, because calls can have megabytes of arguments. Draw it again for each change
    of a review.

    ``with_options``: whether to list the choices. False if they are shown beside the page.
    """

    def __init__(
        self,
        details: RequestDetails,
        changes: Sequence[Sequence[DiffLine] | None],
        texts: Catalogue,
        *,
        with_options: bool = True,
    ) -> None:
        self._details = details
        self._with_options = with_options
        self._changes = changes
        self._texts = texts
        calls = zip(details.request.calls, details.proposals, strict=True)
        self._heads = [
            _call_head(call, would, texts, is_outdated=call.id in details.outdated) for call, would in calls
        ]

    def rows(self, reviews: Mapping[str, Review]) -> list[RequestRow]:
        """Return all rows. ``reviews`` contains the accepted hunks and the comments, by call id."""
        details, texts = self._details, self._texts
        rows = [RequestRow(line) for line in _request_head(details, texts, with_options=self._with_options)]
        calls = zip(details.request.calls, details.proposals, self._changes, self._heads, strict=True)
        for call, would, changed, head in calls:
            review = reviews.get(call.id)
            rows += [RequestRow(line) for line in head.lines]
            if review is not None and review.is_partial and not head.divisible:
                rows.append(RequestRow([Span("   "), Span(texts("review.not_in_part"), "warning")]))
            if would is not None:
                rows += _change_rows(call, changed or (), review, texts)
            else:
                rows += [RequestRow(line) for line in _reported_difference(details)]
            rows.append(RequestRow([]))
        if details.asked.ended is not None:
            rows += [RequestRow(line) for line in _answer_lines(details, texts)]
        return rows

    def draw(self, reviews: Mapping[str, Review]) -> RequestDrawing:
        """Return the drawing of all rows. ``reviews``: see `rows`."""
        return RequestDrawing(self.rows(reviews), reviews, self._texts)


def _request_head(details: RequestDetails, texts: Catalogue, *, with_options: bool) -> list[Line]:
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
    rule = request.metadata.get(POLICY_RULE)
    if request.kind == "approve" and isinstance(rule, str):
        lines += [[Span(" "), Span(texts("request.by_policy", rule=sanitize(rule)), "dim")], []]
    if request.options and with_options:
        lines += [[Span("  · ", "dim"), Span(sanitize(option.label))] for option in request.options]
        lines.append([])
    return lines


def _call_head(
    call: PendingCall, would: Proposal | None, texts: Catalogue, *, is_outdated: bool
) -> _CallHead:
    lines: list[Line] = [
        [
            Span(" "),
            Span(sanitize(tool_name(call.name, texts)), "title"),
            Span(f"  {sanitize(call.name)}", "dim"),
        ]
    ]
    lines += [[Span("   "), Span(sanitize(line))] for line in argument_lines(call, would)]
    lines += [[Span("   "), Span(line, "dim")] for line in sanitize_lines(call.notice) if line]
    if would is None:
        return _CallHead(lines, divisible=False)
    if is_outdated and not would.is_stale:
        lines.append([Span("   "), Span(texts("request.outdated"), "warning")])
    return _CallHead([*lines, *_proposal_head(would, texts)], can_write_part(call, would.after))


def _reported_difference(details: RequestDetails) -> list[Line]:
    """Return the difference that the client or its hook reported, for files outside of the zones."""
    told = details.request.metadata.get(DIFFERENCE)
    if not isinstance(told, str):
        return []
    lines: list[Line] = [[]]
    for line in sanitize_lines(told.rstrip("\n"))[:MAX_LINES]:
        style = "dim" if line.startswith(("+++", "---", "@@")) else _DIFF_STYLES.get(line[:1], "")
        lines.append([Span("   "), Span(line, style)])
    return lines


def _proposal_head(would: Proposal, texts: Catalogue) -> list[Line]:
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
    return lines


def _change_rows(
    call: PendingCall, changed: Sequence[DiffLine], review: Review | None, texts: Catalogue
) -> Iterator[RequestRow]:
    if not changed:
        yield RequestRow([Span("   "), Span(texts("request.no_changes"), "dim")])
    last = None
    for line in _without_start(changed)[:MAX_LINES]:
        if line.kind == "hunk":
            last = None
            yield RequestRow([Span("        ", "number"), Span("⋯", "dim")])
            continue
        key = LineKey(line.old - 1, is_old=True) if line.kind == "removed" else LineKey(line.new - 1)
        hunk = review.hunk_of(key) if review is not None and line.kind != "same" else None
        is_declined = review is not None and hunk in review.declined
        mark = "" if hunk is None or hunk == last else "☐" if is_declined else "☑"
        last = hunk
        sign, style = _LINE_STYLES[line.kind]
        number = line.new if line.kind != "removed" else line.old
        gutter_style = style if line.kind in ("added", "removed") else "number"
        text_style = "dim" if is_declined else style
        gutter = Span(f"{mark or ' '}{number:>5} {sign} ", "dim" if is_declined else gutter_style)
        yield RequestRow([gutter, Span(sanitize(line.text), text_style)], call.id, key, hunk)
        said = review.comment_on(key) if review is not None else ""
        for text in sanitize_lines(said) if said else ():
            yield RequestRow([Span("       ┃ ", "accent"), Span(text, "human")], call.id, key, hunk)
    if len(changed) > MAX_LINES:
        count = len(changed) - MAX_LINES
        yield RequestRow([Span("   "), Span(texts("request.more", count=count), "dim")])


def _answered_by(ended: Row, texts: Catalogue) -> str:
    """Return the name of the person who answered, or the use of the grant that answered."""
    number = get_int(ended.detail, "grant")
    return texts("request.by_grant", row=number) if number else sanitize(ended.actor)


def _answer_lines(details: RequestDetails, texts: Catalogue) -> list[Line]:
    ended = details.asked.ended
    if ended is None:
        return []
    outcome = texts(f"request.outcome.{details.asked.outcome}")
    lines: list[Line] = [
        [
            Span(" "),
            Span(outcome, "title"),
            Span(f"  {_answered_by(ended, texts)} · {zoned_time(ended.time)}", "dim"),
        ]
    ]
    signed = signing_key(ended)
    if ended.tool == ANSWER and not get_int(ended.detail, "grant"):
        key = "request.signed_as_before" if is_legacy(ended) else "request.signed"
        by = texts(key, fingerprint=sanitize(signed)) if signed else texts("request.unsigned")
        lines.append([Span(f"   {by}", "dim")])
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
                    for line in _pretty_lines(parse_arguments(decision.arguments))
                ]
    return lines


def argument_lines(call: PendingCall, would: Proposal | None) -> list[str]:
    """Return the arguments of ``call`` as lines, without the text that is visible in its change."""
    given = parse_arguments(call.arguments)
    return _pretty_lines(
        {name: value for name, value in given.items() if would is None or value != would.after or not value}
    )


def _pretty_lines(arguments: Mapping[str, Json]) -> list[str]:
    return format_json(json.dumps(arguments, ensure_ascii=False)).split("\n") if arguments else []


def _without_start(changed: Sequence[DiffLine]) -> Sequence[DiffLine]:
    """Return the lines without a hunk header at the text's start, where no lines are left out."""
    starts = changed and changed[0].kind == "hunk" and max(changed[0].old, changed[0].new) <= 1
    return changed[1:] if starts else changed
