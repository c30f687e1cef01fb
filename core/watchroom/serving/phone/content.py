"""The content of a page about a request. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import diff_hunks
from watchroom.features.budgets.rules import budget_asked
from watchroom.features.calls.proposals import Proposal
from watchroom.features.calls.reads import RequestDetails
from watchroom.features.requests.rows import DIFFERENCE, POLICY_RULE, Option, PendingCall, parse_arguments
from watchroom.model import Json, RequestKind, utc_datetime
from watchroom.texts import Catalogue

LineKind: TypeAlias = Literal["added", "removed", "place", "same"]
MAX_LINES: Final = 400
"""Maximum lines of all differences on a page."""
MAX_COLUMNS: Final = 400
"""Maximum characters of a line."""
MAX_CHARACTERS: Final = 4000
"""Maximum characters of an argument, or of a question."""
_MAX_ITEMS: Final = 50
"""Maximum number of calls, arguments of a call, and options."""
_KINDS: Final[Mapping[str, LineKind]] = {"+": "added", "-": "removed"}
_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)


class ShownLine(NamedTuple):
    """A line of a difference, with its sign."""

    kind: LineKind
    text: str


class ShownCall(NamedTuple):
    """A call that waits for approval.

    - ``name``: the tool.
    - ``path``: the path that it changes, empty for none.
    - ``facts``: the names and values of its arguments.
    - ``lines``: the difference.
    - ``omitted``: the number of lines that are left out.
    - ``note``: a sentence about the difference, empty for none.
    """

    name: str
    path: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[ShownLine, ...]
    omitted: int
    note: str


class ShownRequest(NamedTuple):
    """A request.

    - ``facts``: labels and values, such as the deadline.
    - ``warning``: sentences about an outdated request, and about calls and options that are left out. Empty
      for none.
    - ``can_decline``: whether a question can be declined.
    """

    kind: RequestKind
    title: str
    facts: tuple[tuple[str, str], ...]
    question: str
    calls: tuple[ShownCall, ...]
    options: tuple[Option, ...]
    multi: bool
    warning: str
    can_decline: bool


def show_request(details: RequestDetails, texts: Catalogue) -> ShownRequest:
    """Return what the page of the request ``details`` shows, within the bounds of this module."""
    request, asked = details.request, details.asked
    facts = [(texts("phone.request"), f"#{asked.id}")]
    if request.expires is not None:
        local = utc_datetime(request.expires).astimezone().isoformat(" ", "seconds")
        facts.append((texts("phone.deadline"), local))
    if isinstance(rule := request.metadata.get(POLICY_RULE), str):
        facts.append((texts("phone.rule"), _cut(rule, texts)))
    calls, left = [], MAX_LINES
    whole = request.metadata.get(DIFFERENCE)
    for call, change in list(zip(request.calls, details.proposals, strict=True))[:_MAX_ITEMS]:
        shown = _show_call(call, change, whole if isinstance(whole, str) else "", left, texts)
        whole = ""
        left -= len(shown.lines)
        calls.append(shown)
    omitted = len(request.calls) - len(calls)
    warnings = [texts("phone.outdated")] if details.outdated else []
    warnings += [texts("phone.more_calls", count=omitted)] if omitted else []
    unlisted = len(request.options) - _MAX_ITEMS
    warnings += [texts("phone.more_options", count=unlisted, request=asked.id)] if unlisted > 0 else []
    return ShownRequest(
        request.kind,
        texts(f"phone.title.{request.kind}", agent=asked.agent),
        tuple(facts),
        _cut(request.prompt.strip(), texts),
        tuple(calls),
        request.options[:_MAX_ITEMS],
        request.multi,
        " ".join(warnings),
        can_decline=budget_asked(request) is None,
    )


def _show_call(
    call: PendingCall, change: Proposal | None, difference: str, max_lines: int, texts: Catalogue
) -> ShownCall:
    """Return ``call`` with at most ``max_lines`` lines of the difference.

    - ``change``: the text that the call would write, None for none.
    - ``difference``: the call's changes to other files, as a unified diff.
    """
    arguments = parse_arguments(call.arguments)
    facts = [
        (_cut(name, texts), _cut(_write(value), texts))
        for name, value in list(arguments.items())[:_MAX_ITEMS]
        if change is None or not _is_shown(name, value, change)
    ]
    if (more := len(arguments) - _MAX_ITEMS) > 0:
        facts.append(("…", texts("phone.more_arguments", count=more)))
    if not arguments and call.arguments.strip() not in ("", "{}"):
        facts = [("", _cut(call.arguments, texts))]
    note = ""
    if change is not None:
        difference = diff_hunks(change.before, change.after)
        note = "" if difference else texts("phone.no_change")
    lines = list(_lines_of(difference, texts))
    shown = lines[: max(0, max_lines)]
    path = change.path if change is not None else ""
    return ShownCall(call.name, path, tuple(facts), tuple(shown), len(lines) - len(shown), note)


def _is_shown(name: str, value: Json, change: Proposal) -> bool:
    """Return whether the title and the difference of a call already show an argument."""
    return value == (change.after if name == "content" else change.path)


def _lines_of(difference: str, texts: Catalogue) -> Iterator[ShownLine]:
    """Yield the lines of ``difference``. The numbers in the head of a hunk say how many lines belong to it,
    because a removed line can look like the head of a file."""
    old = new = 0
    for line in difference.removesuffix("\n").split("\n") if difference else ():
        cut = _cut(line, texts, MAX_COLUMNS)
        if old <= 0 and new <= 0:
            if found := _HUNK.match(line):
                old, new = (1 if each is None else int(each) for each in found.groups())
            yield ShownLine("place", cut)
            continue
        kind = _KINDS.get(line[:1], "same")
        old -= kind == "removed" or (kind == "same" and not line.startswith("\\"))
        new -= kind == "added" or (kind == "same" and not line.startswith("\\"))
        yield ShownLine(kind, cut)


def _write(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, texts: Catalogue, most: int = MAX_CHARACTERS) -> str:
    more = len(text) - most
    return text if more <= 0 else f"{text[:most]}{texts('phone.more_characters', count=more)}"
