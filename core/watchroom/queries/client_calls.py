"""A call of a client's own tool in full, by the row with which it ended: its arguments, its result, what it
changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Json, Row, parse_object
from watchroom.queries.rows import find_content
from watchroom.queries.step_content import StepCall, parse_step
from watchroom.rules.client_calls import PATCH
from watchroom.rules.details import get_count, get_list, get_text
from watchroom.rules.policy_subject import policy_subject
from watchroom.rules.requests import parse_arguments

_MAX_STEPS: Final = 500
"""Steps before the end of a call that are searched for its beginning."""
_PAGE: Final = 10
_MAX_PATCH_LINES: Final = 20_000
MAX_DIFFERENCE: Final = 100_000
"""Characters of a difference."""


class ClientCallText(NamedTuple):
    """What a call was made with and what it gave, as the client reported them, and the ``difference`` that it
    made as a unified difference. Each is empty if it is not known."""

    arguments: str = ""
    result: str = ""
    difference: str = ""


def read_client_call(journal: Journal, row: Row) -> ClientCallText:
    """Return the call of a client's own tool that ended with ``row``. Raise `JournalError`."""
    results = parse_step(find_content(journal, row) or "").results
    if not results:
        return ClientCallText()
    call_id, result = results[0]
    call = _find_call(journal, row, call_id)
    arguments = call.arguments if call is not None else ""
    return ClientCallText(arguments, result, call_difference(arguments, result))


def _find_call(journal: Journal, row: Row, call_id: str) -> StepCall | None:
    until = (row.version or 1) - 1
    first = max(0, until - _MAX_STEPS)
    while until > first:
        after = max(first, until - _PAGE)
        try:
            steps = journal.versions("session", row.path, after=after, until=until)
        except JournalDamaged:
            steps = []
        for _, text in reversed(steps):
            found = next((each for each in parse_step(text or "").calls if each.id == call_id), None)
            if found is not None:
                return found
        until = after
    return None


def call_difference(arguments: str, result: str) -> str:
    """Return what a call changed, as a unified difference, at most `MAX_DIFFERENCE` characters; empty if its
    ``arguments`` and ``result`` (JSON) do not say.

    The lines come from the client. Without them in the result, it is the passages in the arguments, whose
    line numbers are those within the passage.
    """
    given = parse_arguments(arguments)
    name = next(iter(policy_subject(given).paths), "")
    told = _patch_of_result(parse_object(result) or {}, name)
    if told:
        return told[:MAX_DIFFERENCE]
    for value in given.values():
        texts = value if isinstance(value, list) else [value]
        patch = next((each for each in texts if isinstance(each, str) and PATCH in each), "")
        if patch:
            return patch[:MAX_DIFFERENCE]
    # The first paint does not wait for it.
    from watchroom.merge import unified_diff

    content = given.get("content")
    passages = [("", content)] if isinstance(content, str) else _passages(given)
    parts: list[str] = []
    for old, new in passages:
        if sum(map(len, parts)) >= MAX_DIFFERENCE:
            break
        parts.append(unified_diff(_lines(old), _lines(new), name, name))
    return "\n".join(filter(None, parts))[:MAX_DIFFERENCE]


def _lines(passage: str) -> str:
    """``passage`` with an end of its last line: only a file can lack it."""
    text = passage[:MAX_DIFFERENCE]
    return text if text.endswith("\n") or not text else f"{text}\n"


def _passages(given: Mapping[str, Json]) -> list[tuple[str, str]]:
    edits = given.get("edits")
    found: list[tuple[str, str]] = []
    for edit in edits if isinstance(edits, list) else [given]:
        if isinstance(edit, Mapping):
            old, new = get_text(edit, "old_string"), get_text(edit, "new_string")
            if old or new:
                found.append((old, new))
    return found


def _patch_of_result(result: Mapping[str, Json], name: str) -> str:
    """The hunks that Claude Code gives as the result of an edit, empty without them."""
    lines: list[str] = []
    for hunk in get_list(result, "structuredPatch"):
        if not isinstance(hunk, Mapping) or len(lines) > _MAX_PATCH_LINES:
            continue
        old = f"-{get_count(hunk, 'oldStart')},{get_count(hunk, 'oldLines')}"
        new = f"+{get_count(hunk, 'newStart')},{get_count(hunk, 'newLines')}"
        lines.append(f"@@ {old} {new} @@")
        lines += [line for line in get_list(hunk, "lines") if isinstance(line, str)]
    return "\n".join([f"--- {name}", f"+++ {name}", *lines]) if lines else ""
