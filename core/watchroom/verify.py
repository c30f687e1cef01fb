"""Compares the journal with the files laid out from it, and mends the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from watchroom import names
from watchroom.disk import Parts
from watchroom.model import Row, Zone
from watchroom.tree.layout import history_line, history_place, meta_place, meta_text, version_place
from watchroom.zones import OutsideEdits, Store

ProblemKind: TypeAlias = Literal["journal", "file", "version", "history", "metadata"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as the journal says. ``journal``: the journal itself is damaged."""

    kind: ProblemKind
    zone: Zone
    path: str
    what: str


def verify(store: Store, outside: OutsideEdits) -> list[Problem]:
    """Every disagreement between journal and files. Reads everything; changes nothing."""
    store.committer.flush()
    found = [Problem("journal", "workspace", "", what) for what in store.journal.problems()]
    found.extend(Problem("file", zone, path, "differs") for zone, path in outside.differing())
    with store.committer.exclusively():
        for head in store.journal.heads("collab"):
            found.extend(_version_problems(store, head))
        found.extend(
            Problem("metadata", "handoff", head.path, "differs")
            for head in store.journal.heads("handoff")
            if _read(store, meta_place(head.path)) != meta_text(head)
        )
    return found


def repair(store: Store, outside: OutsideEdits) -> list[Problem]:
    """Record what differs, so that nothing is lost, then lay it out again. Returns what remains wrong.

    A file that cannot be kept in the journal, because it is no text or too large, is left where it is.
    """
    outside.scan()
    wrong = {(problem.zone, problem.path) for problem in verify(store, outside) if problem.kind != "journal"}
    with store.committer.exclusively():
        for zone, path in sorted(wrong):
            if _is_kept(store, zone, path):
                store.tree.lay_again(zone, path)
    return verify(store, outside)


def _is_kept(store: Store, zone: Zone, path: str) -> bool:
    """Whether what stands at the path, if anything does, is in the journal."""
    if not names.is_unicode(path):
        return False
    try:
        data = store.tree.current(zone, path)
    except OSError:
        return False
    if data is None:
        return True
    checksum = names.sha256(data)
    head = store.journal.head(zone, path)
    if head is not None and head.sha256 == checksum:
        return True
    refused = store.journal.refused(zone, path)
    return any(row.sha256 == checksum and store.journal.content(row.seq) is not None for row in refused)


def _version_problems(store: Store, head: Row) -> Iterator[Problem]:
    rows = store.journal.history("collab", head.path)
    for row in rows:
        data = _read(store, version_place(row.path, row.version or 0))
        if data is None:
            yield Problem("version", "collab", head.path, f"v{row.version} is missing")
        elif names.sha256(data) != row.sha256:
            yield Problem("version", "collab", head.path, f"v{row.version} differs")
    was_behind = store.tree.history_is_behind(head.path)
    what = _history_problem(_read(store, history_place(head.path)), rows)
    if what and not (was_behind and what.endswith("behind")):
        yield Problem("history", "collab", head.path, what)


def _history_problem(data: bytes | None, rows: list[Row]) -> str | None:
    if data is None:
        return "history.json is missing"
    try:
        kept = json.loads(data)
    except ValueError:
        return "history.json is not JSON"
    wanted = [json.loads(history_line(row)) for row in rows]
    if kept == wanted:
        return None
    behind = isinstance(kept, list) and kept == wanted[: len(kept)]
    return f"history.json is {len(wanted) - len(kept)} versions behind" if behind else "history.json differs"


def _read(store: Store, parts: Parts) -> bytes | None:
    try:
        return store.tree.folder.read(parts)
    except OSError:
        return None
