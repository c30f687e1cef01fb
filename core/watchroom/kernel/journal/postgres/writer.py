"""Appends rows on the server. Each append is one statement, which is retried if its answer was lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

import psycopg

from watchroom import validation
from watchroom.errors import JournalUnreachable, OutcomeUnknown
from watchroom.kernel.journal.postgres.connections import (
    UNREACHABLE_SECONDS,
    Connections,
    Patience,
    is_lost,
    translated,
)
from watchroom.kernel.journal.postgres.queries import APPEND
from watchroom.kernel.rules import append as rules
from watchroom.kernel.rules.row_files import check_draft
from watchroom.model import Appended, Draft, Json, Row, Write

UNKNOWN_SECONDS: Final = 10.0
"""Seconds for which an append with a lost answer is retried."""


_ROLLED_BACK: Final = "40"
"""The class of errors after which an append is retried, because two appends waited for each other."""


class PostgresWriter:
    """Appends through ``connections``. May be used from any thread.

    - ``read_rows``: returns the rows with the given numbers.
    - ``read_head``: returns the head of a row's path before the row.
    """

    def __init__(
        self,
        connections: Connections,
        read_rows: Callable[[Sequence[int]], dict[int, Row]],
        read_head: Callable[[Row], Row | None],
    ) -> None:
        self._connections = connections
        self._read_rows = read_rows
        self._read_head = read_head

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Append ``drafts`` in one commit. Return the outcome of each, in order.

        Raise `JournalUnreachable` (no draft became a row), `OutcomeUnknown` if the server became unreachable
        during the commit, `JournalBusy`, `JournalError`, and `InvalidPath` in the cases of
        `rules.append.append`. With ``all_or_nothing``, raise `HeadsMoved` if a draft would be refused.
        """
        for draft in drafts:
            check_draft(draft)
        values = (uuid4(), json.dumps([_described(draft) for draft in drafts]), _contents(drafts))
        checked = drafts if all_or_nothing else ()
        return self._completed(drafts, self._send(values, checked))

    def _send(self, values: tuple[Any, ...], checked: Sequence[Draft]) -> list[tuple[Any, ...]]:
        """Return the server's answer.

        All attempts have the same key, so a second attempt returns the rows of the first. Raise `HeadsMoved`
        if one of the drafts ``checked`` would be refused.
        """
        was_sent = False
        patience = Patience(UNREACHABLE_SECONDS)
        while True:
            try:
                with self._connections.use() as connection:
                    if not was_sent:
                        was_sent, patience = True, Patience(UNKNOWN_SECONDS)
                    if not checked:
                        return connection.execute(APPEND, values, binary=True).fetchall()
                    with connection.transaction():
                        answers = connection.execute(APPEND, values, binary=True).fetchall()
                        rules.check_none_refused(checked, (answer[3] for answer in answers))
                    return answers
            except psycopg.Error as error:
                if is_lost(error):
                    self._connections.forget_idle()
                elif (error.sqlstate or "")[:2] != _ROLLED_BACK:
                    raise translated(error) from error
                if not patience.wait():
                    if was_sent and is_lost(error):
                        raise OutcomeUnknown(reason=str(translated(error).values["reason"])) from error
                    raise translated(error) from error

    def _completed(self, drafts: Sequence[Draft], answers: list[tuple[Any, ...]]) -> list[Appended]:
        """Add rows to the answers that the server did not send. Raise `JournalError`."""
        missing = [answer[0] for answer in answers if not answer[6]]
        missing += [answer[7] for answer in answers if answer[6] and answer[7] and answer[9] is None]
        try:
            rows = self._read_rows(sorted(set(missing))) if missing else {}
            return [
                self._appended(draft, answer, rows) for draft, answer in zip(drafts, answers, strict=True)
            ]
        except JournalUnreachable as error:
            # The rows are committed, but the previous heads could not be read.
            raise OutcomeUnknown(reason=str(error.values.get("reason", ""))) from error

    def _appended(self, draft: Draft, answer: tuple[Any, ...], rows: dict[int, Row]) -> Appended:
        seq, time, version, outcome, error, extra, is_new, head_seq, *head = answer
        if not is_new:
            row = rows[seq]
            return Appended(row, self._read_head(row) if isinstance(draft, Write) else None)
        row = _row(draft, (seq, time, version, outcome, error), extra)
        if head_seq is None or not isinstance(draft, Write):
            return Appended(row, None)
        if head[1] is None:
            return Appended(row, rows[head_seq])
        return Appended(row, _head(draft, head_seq, head))


def _described(draft: Draft) -> dict[str, Json]:
    detail = dict(draft.detail or {})
    if draft.key:
        detail[rules.KEY] = draft.key
    described: dict[str, Json] = {
        "w": isinstance(draft, Write),
        "actor": draft.actor,
        "tool": draft.tool,
        "zone": draft.zone,
        "path": draft.path,
        "message": draft.message,
        "detail": rules.as_json(detail),
        "key": draft.key,
    }
    if isinstance(draft, Write):
        return described | {
            "base": draft.expected,
            "conditions": [[each.zone, each.path, each.seq, each.error] for each in draft.conditions] or None,
        }
    return described | {
        "base": draft.base,
        "outcome": draft.outcome,
        "error": draft.error,
        "sha256": draft.sha256,
        "size": draft.size,
    }


def _contents(drafts: Sequence[Draft]) -> list[bytes | None]:
    return [None if draft.content is None else draft.content.encode() for draft in drafts]


def _row(draft: Draft, decided: tuple[int, int, int | None, Any, str], extra: str) -> Row:
    """Return the server's row for ``draft``."""
    seq, time, version, outcome, error = decided
    data = None if draft.content is None else draft.content.encode()
    sha256, size = (None, None) if data is None else (validation.sha256(data), len(data))
    if isinstance(draft, Write):
        base: int | None = draft.expected
    else:
        base = draft.base
        if data is None:
            sha256, size = draft.sha256, draft.size
    detail = dict(draft.detail or {})
    if draft.key:
        detail[rules.KEY] = draft.key
    if extra:
        detail |= json.loads(f"{{{extra}}}")
    return Row(
        *(seq, time, draft.actor, draft.tool, draft.zone, draft.path, version, base, outcome, error),
        *(draft.message, sha256, size, rules.as_json(detail)),
    )


def _head(draft: Write, seq: int, fields: Sequence[Any]) -> Row:
    time, actor, tool, version, base, message, sha256, size, detail = fields
    return Row(
        *(seq, time, actor, tool, draft.zone, draft.path, version, base, "ok", ""),
        *(message, sha256, size, detail),
    )
