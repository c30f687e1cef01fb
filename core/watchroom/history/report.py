"""Reports on the rows between two moments: the work of each actor, the decisions, and the open items.

A report is computed from the changed paths and the models of both moments. Its lists have limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.checks.rows import CHECK_ZONE
from watchroom.features.overview.model import Model, Need, order_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.service import PeopleReader
from watchroom.features.requests.service import find_request_end
from watchroom.features.reverts.planning import RevertRecord, read_record
from watchroom.features.sessions.view import RequestView
from watchroom.features.tasks.view import TaskView
from watchroom.history.comparison import COMPARED, PathDifference, read_differences
from watchroom.kernel.journal import ChangedPath, Journal, RowFilter
from watchroom.kernel.journal.topics import SETTLED
from watchroom.model import END_CHECK, SYSTEM, Outcome, Row

MAX_PATHS: Final = 500
"""Maximum number of compared paths. The paths with the most versions are compared."""
MAX_ROWS: Final = 200
"""Maximum number of listed decisions, reverts and refusals, newest first."""
_REFUSALS: Final[tuple[Outcome, ...]] = ("conflict", "denied", "failed")


class ActorReport(NamedTuple):
    """The work of ``actor``, as counts.

    - ``versions``, ``paths``: its versions, and the paths of these versions.
    - ``refused``: its refused calls.
    - ``requests``: its requests to people.
    - ``commands``: the commands that it ran.
    - ``used``: its usage.
    - ``client_calls``, ``client_edits``: the calls of its client's own tools, and the calls that wrote files.
    """

    actor: str
    versions: int = 0
    paths: int = 0
    refused: int = 0
    requests: int = 0
    commands: int = 0
    used: UsageTotal = UsageTotal()
    client_calls: int = 0
    client_edits: int = 0


class Settlement(NamedTuple):
    """A settled conflict, or an answered ``request``. ``row``: the row of the decision."""

    row: Row
    request: RequestView | None = None


class RevertReport(NamedTuple):
    """A revert of agents' work by the row ``row``. ``record``: None if it cannot be read."""

    row: Row
    record: RevertRecord | None


class Report(NamedTuple):
    """The report on the rows after row ``after`` up to row ``until``.

    - ``since``, ``ended``: the times of the first and the last row, in nanoseconds since the epoch.
    - ``actors``: the actors, most active first.
    - ``paths``: the differences of the paths with the most versions.
    - ``more_paths``: the number of changed paths that were left out.
    - ``decisions``, ``reverts``, ``refused``, ``checks``: the newest items, newest first. A check is the row
      of its result.
    - ``needs``: the first `MAX_ROWS` needs that are open at the end.
    - ``open_needs``: the number of open needs.
    - ``tasks``: the tasks that are open at the end.
    - ``used``: the usage of all agents.
    """

    after: int
    until: int
    since: int
    ended: int
    actors: tuple[ActorReport, ...]
    paths: tuple[PathDifference, ...]
    more_paths: int
    decisions: tuple[Settlement, ...]
    reverts: tuple[RevertReport, ...]
    refused: tuple[Row, ...]
    checks: tuple[Row, ...]
    needs: tuple[Need, ...]
    open_needs: int
    tasks: tuple[TaskView, ...]
    used: UsageTotal

    @property
    def versions(self) -> int:
        """The number of new versions."""
        return sum(each.versions for each in self.actors)

    @property
    def refusals(self) -> int:
        """The number of refused calls."""
        return sum(each.refused for each in self.actors)


def read_report(journal: Journal, after: int, until: int) -> Report:
    """Return the report on the rows after ``after`` up to ``until``. Raise `JournalError`."""
    changed = journal.changed_paths(after, until, zones=(*COMPARED, "request", "command", "revert"))
    work = [each for each in changed if each.zone in COMPARED]
    most_changed = sorted(work, key=lambda each: -each.versions)[:MAX_PATHS]
    earlier, later = read_model(journal, after), read_model(journal, until)
    refused = _read_refused(journal, after, until)
    first = journal.rows(after, until=until, limit=1)
    needs = order_needs(later.needs)
    return Report(
        after,
        until,
        first[0].time if first else later.time,
        later.time,
        _count_by_actor(changed, earlier, later, refused),
        tuple(read_differences(journal, most_changed)),
        len(work) - len(most_changed),
        _read_decisions(journal, after, until, changed),
        _read_reverts(journal, changed, PeopleReader(journal)),
        refused,
        _read_checks(journal, after, until),
        needs[:MAX_ROWS],
        len(needs),
        tuple(task for task in later.tasks if task.ended is None),
        later.usage.team.minus(earlier.usage.team),
    )


def _count_by_actor(
    changed: Iterable[ChangedPath], earlier: Model, later: Model, listed: Sequence[Row]
) -> tuple[ActorReport, ...]:
    """Return the counts of each actor, most active first. For people, only the refusals in ``listed``
    count."""
    versions, paths, requests, commands = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for each in changed:
        if each.zone in COMPARED:
            versions.update(dict(each.actors))
            paths.update(actor for actor, _ in each.actors)
        elif each.first == 1 and each.zone != "revert":
            (requests if each.zone == "request" else commands)[each.actors[0][0]] += 1
    known = {view.agent.id: view.refused for view in earlier.agents}
    refused = Counter(row.actor for row in listed)
    for view in later.agents:
        refused[view.agent.id] = max(0, view.refused - known.get(view.agent.id, 0))
    used = _used_by_agent(earlier, later)
    before = {view.agent.id: (view.client_calls, view.client_edits) for view in earlier.agents}
    by_client = {
        view.agent.id: (view.client_calls - calls, view.client_edits - edits)
        for view in later.agents
        for calls, edits in [before.get(view.agent.id, (0, 0))]
        if view.client_calls > calls
    }
    refusing = (name for name in refused if refused[name])
    counted = {*versions, *requests, *commands, *refusing, *used, *by_client}
    found = [
        ActorReport(
            name,
            versions[name],
            paths[name],
            refused[name],
            requests[name],
            commands[name],
            used.get(name, UsageTotal()),
            *by_client.get(name, (0, 0)),
        )
        for name in counted
    ]
    return tuple(sorted(found, key=lambda each: (-each.versions, -each.commands, -each.refused, each.actor)))


def _used_by_agent(earlier: Model, later: Model) -> Mapping[str, UsageTotal]:
    """Return the usage of each agent between the two models, without agents that have none."""
    before = earlier.usage.agents
    found = {name: used.minus(before.get(name, UsageTotal())) for name, used in later.usage.agents.items()}
    return {name: used for name, used in found.items() if used.tokens or used.cost}


def _read_refused(journal: Journal, after: int, until: int) -> tuple[Row, ...]:
    found = [
        row
        for outcome in _REFUSALS
        for row in journal.rows_before(
            until + 1, limit=MAX_ROWS, only=RowFilter(outcome=outcome, after=after)
        )
    ]
    return tuple(sorted(found, key=lambda row: -row.seq)[:MAX_ROWS])


def _read_checks(journal: Journal, after: int, until: int) -> tuple[Row, ...]:
    only = RowFilter(actor=SYSTEM, zone=CHECK_ZONE, tool=END_CHECK, outcome="ok", after=after)
    return tuple(journal.rows_before(until + 1, limit=MAX_ROWS, only=only))


def _read_decisions(
    journal: Journal, after: int, until: int, changed: Iterable[ChangedPath]
) -> tuple[Settlement, ...]:
    people = PeopleReader(journal)
    topic = journal.topic(SETTLED, after=after, until=until, limit=MAX_ROWS)
    settled = [Settlement(row) for row in topic if people.counts(row)]
    closed = sorted((each for each in changed if each.zone == "request" and each.last > 1), key=_newest_first)
    for each in closed[:MAX_ROWS]:
        asked = journal.version("request", each.path, 1)
        ended = find_request_end(journal, people, each.path)
        if asked is not None and ended is not None and ended.kind == "human" and after < ended.seq <= until:
            settled.append(Settlement(ended, RequestView(asked, ended)))
    return tuple(sorted(settled, key=lambda each: -each.row.seq)[:MAX_ROWS])


def _read_reverts(
    journal: Journal, changed: Iterable[ChangedPath], people: PeopleReader
) -> tuple[RevertReport, ...]:
    begun = sorted((each for each in changed if each.zone == "revert" and each.first == 1), key=_newest_first)
    rows = [journal.version("revert", each.path, 1) for each in begun[:MAX_ROWS]]
    counting = [row for row in rows if row is not None and people.counts(row)]
    return tuple(RevertReport(row, _find_record(journal, row)) for row in counting)


def _find_record(journal: Journal, row: Row) -> RevertRecord | None:
    try:
        return read_record(journal, row.path)
    except JournalDamaged:
        return None


def _newest_first(changed: ChangedPath) -> int:
    return -changed.seq
