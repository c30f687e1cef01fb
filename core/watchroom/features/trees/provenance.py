"""Finds where the versions of files come from: the sessions of their calls, the people who approved these
calls, the checks of a tree, and the conflicts that people settled. Only from rows: nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.features.config.store import Store
from watchroom.features.requests.rows import parse_answer, parse_request
from watchroom.features.tasks.rows import is_spawn
from watchroom.features.trees.landing import read_landing
from watchroom.features.trees.rows import (
    CLIENT_CALL_ID,
    LAND,
    REPO,
    TREE,
    TRY_AGENT,
    read_try,
    repo_path,
    split_repo_path,
)
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import get_int, get_list, get_text
from watchroom.model import ANSWER, CLIENT_CALL, GRANT, SETTLING_TOOLS, Row, parse_object

_PAGE: Final = 500
_MAX_CALLS: Final = 20_000
"""Maximum number of ended calls of an agent that are searched for the session of a version."""
_MAX_CHECKS: Final = 20


class Approval(NamedTuple):
    """An approved call. ``call``: the id that the client gave it. ``row``: the answer or the grant of the
    person."""

    agent: str
    call: str
    row: Row

    @property
    def is_granted(self) -> bool:
        """Whether a grant permitted the call, so that nobody was asked."""
        return self.row.tool == GRANT


class CheckRun(NamedTuple):
    """A command that ran in a copy of the tree.

    - ``agents``: the agents whose work was in the copy; empty for a landing, whose copy has all commits of
      the tree.
    - ``status``: its exit code; None after the timeout.
    """

    command: tuple[str, ...]
    agents: tuple[str, ...]
    status: int | None
    row: Row


class Provenance:
    """Reads the rows of ``store``.

    ``counts``: returns whether a person's decision counts.

    Methods raise `JournalError`.
    """

    def __init__(self, store: Store, counts: Callable[[Row], bool]) -> None:
        self._store = store
        self._counts = counts

    def find_sessions(self, rows: Iterable[Row]) -> dict[int, str]:
        """Return the paths of the sessions whose calls made the versions ``rows``, by row number. A version
        without a known session is left out."""
        calls: dict[str, dict[str, list[int]]] = {}
        for row in rows:
            if call := get_text(row.detail, CLIENT_CALL_ID):
                calls.setdefault(row.actor, {}).setdefault(call, []).append(row.seq)
        return {
            seq: session
            for agent, wanted in calls.items()
            for call, session in self._find_calls(agent, wanted).items()
            for seq in wanted[call]
        }

    def _find_calls(self, agent: str, wanted: Collection[str]) -> dict[str, str]:
        """Return the sessions of the ended calls ``wanted`` of ``agent``, by the call's id."""
        found: dict[str, str] = {}
        only = RowFilter(actor=agent, zone="session", tool=CLIENT_CALL)
        for row in self._read_back(only, _MAX_CALLS):
            for call in self._list_ended(row):
                if call in wanted:
                    # Clients may use an id again: the newest call counts.
                    found.setdefault(call, row.path)
            if len(found) == len(wanted):
                break
        return found

    def _list_ended(self, row: Row) -> Iterator[str]:
        """Yield the ids of the calls that end with the step ``row``."""
        record = parse_object(self._store.journal.content(row.seq) or "") or {}
        for event in get_list(record, "events"):
            if isinstance(event, Mapping) and event.get("type") == "tool_result":
                yield get_text(event, "id")

    def find_approvals(self, agent: str, rows: Iterable[Row]) -> list[Approval]:
        """Return the people's approvals of the calls of ``agent`` that made the versions ``rows``, oldest
        first. A call that a grant permitted has the row of the grant."""
        wanted = {get_text(row.detail, CLIENT_CALL_ID) for row in rows if row.actor == agent} - {""}
        if not wanted:
            return []
        found = [
            Approval(agent, call, decision)
            for row in self._store.journal.heads("request", f"{agent}/")
            if row.tool == ANSWER and row.outcome == "ok" and self._counts(row)
            for call in self._list_approved(row)
            if call in wanted and (decision := self._find_decision(row)) is not None
        ]
        return sorted(found, key=lambda each: each.row.seq)

    def _find_decision(self, answer: Row) -> Row | None:
        """Return the row of the person's decision: ``answer`` itself, or the grant that gave it. None if no
        person decided."""
        if answer.kind == "human":
            return answer
        number = get_int(answer.detail, "grant")
        use = self._store.journal.row(number) if number is not None else None
        return None if use is None else self._store.journal.version(use.zone, use.path, 1)

    def _list_approved(self, answer: Row) -> list[str]:
        """Return the ids of the calls that the row ``answer`` approves."""
        journal = self._store.journal
        asked = journal.version("request", answer.path, 1)
        try:
            request = parse_request(journal.content(asked.seq) or "" if asked is not None else "")
            decisions = parse_answer(journal.content(answer.seq) or "").decisions
        except JournalDamaged:
            return []
        approved = {each.call_id for each in decisions if each.approved}
        return [call.id for call in request.calls if call.id in approved]

    def find_task(self, agent: str) -> str:
        """Return the id of the task that ``agent`` was spawned for or is registered with; empty if none."""
        spawned = self._store.journal.version("agent", agent, 1)
        if spawned is not None and is_spawn(spawned):
            return get_text(spawned.detail, "task")
        found = self._store.registry.current().agents.get(agent)
        return found.task if found is not None else ""

    def find_checks(self, tree: str, after: int) -> list[CheckRun]:
        """Return the newest run of each command that was tried in ``tree`` or checked its landing since the
        row ``after``, oldest first."""
        found: dict[tuple[tuple[str, ...], tuple[str, ...]], CheckRun] = {}
        for tool in (TRY_AGENT, LAND):
            only = RowFilter(zone=TREE, tool=tool, outcome="ok", after=after)
            for row in self._read_back(only, _PAGE):
                check = _read_check(row) if row.path == tree else None
                if check is not None:
                    found.setdefault((check.command, check.agents), check)
        return sorted(found.values(), key=lambda each: each.row.seq)[-_MAX_CHECKS:]

    def find_settled(self, tree: str, names: Collection[str], after: int) -> list[Row]:
        """Return the rows with which people settled conflicts on the files ``names`` of ``tree``, including
        conflicts of its landings, since the row ``after``. Oldest first."""
        found = [
            row
            for tool in SETTLING_TOOLS
            for row in self._read_back(
                RowFilter(zone=REPO, tool=tool, outcome="ok", path=repo_path(tree, ""), after=after), _PAGE
            )
            if split_repo_path(row.path)[1] in names and row.kind == "human" and self._counts(row)
        ]
        return sorted(found, key=lambda each: each.seq)

    def _read_back(self, only: RowFilter, limit: int) -> Iterator[Row]:
        """Yield at most ``limit`` rows that pass ``only``, the newest first."""
        journal = self._store.journal
        before, left = journal.last_seq() + 1, limit
        while left and (page := journal.rows_before(before, limit=min(_PAGE, left), only=only)):
            yield from page
            before, left = page[-1].seq, left - len(page)


def _read_check(row: Row) -> CheckRun | None:
    """Return the check of a note, None if no command ran."""
    if row.tool == TRY_AGENT:
        tried = read_try(row)
        return CheckRun(tried.command, tried.agents, tried.status, row)
    record = read_landing(row)
    return CheckRun(record.command, (), record.status, row) if record.command else None
