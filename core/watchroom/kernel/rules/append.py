"""The append rule: whether a draft becomes the next version, a conflict, or a failed row. Pure.

SQLite uses this implementation of the rule, and PostgreSQL the function ``append`` in its migrations.
``tests/journal/test_append_rule.py`` compares both row by row on random drafts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, filterfalse
from typing import Final, NamedTuple, Protocol

from watchroom import validation
from watchroom.errors import HeadsMoved, JournalDamaged
from watchroom.kernel.rules.row_files import MAX_VERSION, check_draft
from watchroom.kernel.zones import ZONES
from watchroom.model import UNCHECKED, Appended, Condition, Draft, Json, Note, Outcome, Row, Write, Zone

KEY: Final = "idempotency_key"
"""The field of a row's detail with the draft's key."""
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_NUL: Final = re.compile(r"((?<!\\)(?:\\\\)*)\\u0000")
"""Matches NUL in JSON. After an odd number of further backslashes, ``\\u0000`` is six ordinary characters."""


class AppendOutcome(NamedTuple):
    """The outcome of a `Write`.

    - ``version``: the new version, None if there is none.
    - ``error``: the reason why there is no new version.
    - ``detail``: the detail of its row.
    """

    outcome: Outcome
    version: int | None
    error: str
    detail: dict[str, Json]


class Heads(Protocol):
    """The state of the paths of a batch of drafts, before any of these drafts."""

    def head(self, zone: Zone, path: str) -> Row | None:
        """Return the current version of ``path`` in ``zone``, None if it never had a version."""
        ...

    def live_below(self, zone: Zone, path: str) -> Iterable[str]:
        """Return the paths inside the folder ``path`` of ``zone`` whose current version is not a deletion."""
        ...

    def appended(self, actor: str, key: str) -> Appended | None:
        """Return the outcome of the draft that ``actor`` appended with the idempotency ``key``, or None."""
        ...


def decide(
    draft: Write, head: Row | None, blocker: str | None = None, broken: Condition | None = None
) -> AppendOutcome:
    """Decide the outcome of ``draft``.

    - ``head``: the current version of its path, None if there never was one.
    - ``blocker``: an existing file that is at a parent folder of the draft's path, or inside the path.
    - ``broken``: a condition of the draft that does not hold.

    A wrong expected version takes precedence over a broken condition, because the author can recover from a
    conflict.
    """
    detail = dict(draft.detail or {})
    if draft.key:
        detail[KEY] = draft.key
    current = (head.version or 0) if head else 0
    live = head is not None and not head.deleted
    if draft.expected not in (UNCHECKED, current) and not (draft.expected == 0 and not live):
        refused: dict[str, Json] = {"current": current, "current_author": head.actor if head else ""}
        return AppendOutcome("conflict", None, "version_conflict", detail | refused)
    if broken is not None:
        return AppendOutcome("failed", None, broken.error, detail)
    if blocker is not None and is_blockable(draft) and not live:
        return AppendOutcome("failed", None, "path_blocked", detail | {"by": blocker})
    return AppendOutcome("ok", current + 1, "", detail)


def is_blockable(draft: Write) -> bool:
    """Return whether another file can block ``draft``. Deletions, and texts that are written to disk first,
    cannot be blocked."""
    return draft.content is not None and not ZONES[draft.zone].is_on_disk_first


def folders_above(path: str) -> Iterator[str]:
    """Return the folders of ``path`` from the top: ``a`` and ``a/b`` for ``a/b/c``."""
    return accumulate(path.split("/")[:-1], "{}/{}".format)


def append(
    drafts: Sequence[Draft], heads: Heads, last: int, time: int, *, all_or_nothing: bool = False
) -> list[Appended]:
    """Return the outcomes of ``drafts``, in order. Each draft is decided after the drafts before it.

    New rows have numbers above ``last``. For a key that was used before, the outcome is the earlier row.

    - ``heads``: the journal before the drafts.
    - ``last``: the number of the newest row.
    - ``time``: the time of the new rows, in nanoseconds since the epoch.
    - ``all_or_nothing``: raise `HeadsMoved` if a `Write` would be refused.

    Raise `InvalidPath` if the path of a `Write` breaks the rules of its zone, and `JournalDamaged` if no
    version can follow the current one.
    """
    for draft in drafts:
        check_draft(draft)
    batch = _Batch(heads, last, time)
    appended = list(map(batch.add, drafts))
    if all_or_nothing:
        check_none_refused(drafts, (each.row.outcome for each in appended))
    return appended


def check_none_refused(drafts: Iterable[Draft], outcomes: Iterable[Outcome]) -> None:
    """Raise `HeadsMoved` if a `Write` among ``drafts`` has another outcome than ok. ``outcomes``: in the
    order of the drafts."""
    for draft, outcome in zip(drafts, outcomes, strict=True):
        if isinstance(draft, Write) and outcome != "ok":
            raise HeadsMoved(zone=draft.zone, path=draft.path)


class _Batch:
    """A batch of drafts, and the heads after the added drafts."""

    def __init__(self, heads: Heads, last: int, time: int) -> None:
        self._heads = heads
        self._seq = last
        self._time = time
        self._new: dict[tuple[Zone, str], Row] = {}
        self._keyed: dict[tuple[str, str], Appended] = {}

    def add(self, draft: Draft) -> Appended:
        known = self._of_key(draft) if draft.key else None
        if known is not None:
            return known if isinstance(draft, Write) else Appended(known.row, None)
        self._seq += 1
        if isinstance(draft, Note):
            appended = Appended(_row_of_note(draft, self._seq, self._time), None)
        else:
            appended = self._add_write(draft)
        if draft.key:
            self._keyed[draft.actor, draft.key] = appended
        return appended

    def _of_key(self, draft: Draft) -> Appended | None:
        return self._keyed.get((draft.actor, draft.key)) or self._heads.appended(draft.actor, draft.key)

    def _add_write(self, draft: Write) -> Appended:
        head = self._head(draft.zone, draft.path)
        if head is not None and (head.version or 0) >= MAX_VERSION:
            # No tool wrote this row: no version number can follow it.
            raise JournalDamaged
        is_new = head is None or head.deleted
        blocker = self._blocker(draft.zone, draft.path) if is_new and is_blockable(draft) else None
        broken = next(filterfalse(self._holds, draft.conditions), None)
        row = _row_of_write(draft, decide(draft, head, blocker, broken), self._seq, self._time)
        if row.version is not None:
            self._new[row.zone, row.path] = row
        return Appended(row, head)

    def _head(self, zone: Zone, path: str) -> Row | None:
        return self._new.get((zone, path)) or self._heads.head(zone, path)

    def _holds(self, condition: Condition) -> bool:
        head = self._head(condition.zone, condition.path)
        return (head.seq if head else 0) == condition.seq

    def _blocker(self, zone: Zone, path: str) -> str | None:
        """Return an existing file whose path is a parent of ``path``, or lies below it. A disk cannot hold
        both."""
        for above in folders_above(path):
            head = self._head(zone, above)
            if head is not None and not head.deleted:
                return above
        for (_, new), row in self._new.items():
            if row.zone == zone and not row.deleted and new.startswith(path + "/"):
                return new
        return next((old for old in self._heads.live_below(zone, path) if (zone, old) not in self._new), None)


def _row_of_write(draft: Write, decision: AppendOutcome, seq: int, time: int) -> Row:
    sha256, size = _checksum(draft.content)
    return Row(
        seq=seq,
        time=time,
        actor=draft.actor,
        tool=draft.tool,
        zone=draft.zone,
        path=draft.path,
        version=decision.version,
        base=draft.expected,
        outcome=decision.outcome,
        error=decision.error,
        message=draft.message,
        sha256=sha256,
        size=size,
        detail_json=as_json(decision.detail),
    )


def row_of(draft: Draft, seq: int, time: int) -> Row:
    """Return the row for ``draft``, if it is accepted, with the number ``seq`` at ``time``."""
    if isinstance(draft, Note):
        return _row_of_note(draft, seq, time)
    accepted = AppendOutcome("ok", max(0, draft.expected) + 1, "", dict(draft.detail or {}))
    return _row_of_write(draft, accepted, seq, time)


def _row_of_note(draft: Note, seq: int, time: int) -> Row:
    sha256, size = (draft.sha256, draft.size) if draft.content is None else _checksum(draft.content)
    detail = dict(draft.detail or {})
    if draft.key:
        detail[KEY] = draft.key
    return Row(
        seq=seq,
        time=time,
        actor=draft.actor,
        tool=draft.tool,
        zone=draft.zone,
        path=draft.path,
        version=None,
        base=draft.base,
        outcome=draft.outcome,
        error=draft.error,
        message=draft.message,
        sha256=sha256,
        size=size,
        detail_json=as_json(detail),
    )


def _checksum(content: str | None) -> tuple[str | None, int | None]:
    if content is None:
        return None, None
    data = content.encode()
    return validation.sha256(data), len(data)


def as_json(detail: dict[str, Json]) -> str:
    """Return ``detail`` as JSON for its row; an empty text if it has no fields.

    PostgreSQL cannot store NUL. It is replaced by U+FFFD as in `validation.replace_non_path_characters`,
    because details contain folders.
    """
    text = _encode(detail) if detail else ""
    return _NUL.sub("\\1\ufffd", text) if "\\u0000" in text else text
