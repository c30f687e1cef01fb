"""What happened between two moments, for those who were not there: who did what, who decided, what is open.

Made from what changed (`Journal.changed_paths`) and from the models of both moments; what is listed row by
row is bounded, and says how much was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.journal import ChangedPath, Journal, RowFilter
from watchroom.journal.topics import SETTLED
from watchroom.model import Outcome, Row
from watchroom.projections import Model, Need, RequestView, TaskView, read_model
from watchroom.projections.model import order_needs
from watchroom.queries.comparison import COMPARED, PathDifference, read_differences
from watchroom.rules.usage import UsageTotal
from watchroom.zones.people import PeopleReader
from watchroom.zones.requests import find_request_end
from watchroom.zones.revert_planning import RevertRecord, read_record

MOST_PATHS: Final = 500
"""So many paths are compared, those with the most versions."""
MOST_ROWS: Final = 200
"""So many decisions and refusals are listed, the newest."""
_REFUSALS: Final[tuple[Outcome, ...]] = ("conflict", "denied", "failed")


class ActorReport(NamedTuple):
    """What ``actor`` did: so many ``versions`` of so many ``paths``; how often it was ``refused``, asked
    people (``requests``) and ran ``commands``; what it ``used``. ``client_calls`` are calls of its client's
    own tools, of which ``client_edits`` wrote files."""

    actor: str
    versions: int = 0
    paths: int = 0
    refused: int = 0
    requests: int = 0
    commands: int = 0
    used: UsageTotal = UsageTotal()
    client_calls: int = 0
    client_edits: int = 0


class Decision(NamedTuple):
    """That a person settled a conflict, or answered a ``request``: by ``row``."""

    row: Row
    request: RequestView | None = None


class RevertReport(NamedTuple):
    """That the person of ``row`` took back what agents had done: what is in ``record``, None if the record
    cannot be read."""

    row: Row
    record: RevertRecord | None


class Report(NamedTuple):
    """What happened after row ``after`` up to row ``until``; ``since`` and ``ended`` are the times of the
    first and the last row between (nanoseconds since the epoch).

    ``actors`` are in the order of how much they did. ``paths`` are compared, those with the most versions
    first, ``more_paths`` were left out. Of ``decisions``, ``reverts`` and what was ``refused`` the newest
    come first, and older ones are left out. ``needs`` and ``tasks`` are those that are open at the end, the
    first `MOST_ROWS` of ``open_needs``.
    """

    after: int
    until: int
    since: int
    ended: int
    actors: tuple[ActorReport, ...]
    paths: tuple[PathDifference, ...]
    more_paths: int
    decisions: tuple[Decision, ...]
    reverts: tuple[RevertReport, ...]
    refused: tuple[Row, ...]
    needs: tuple[Need, ...]
    open_needs: int
    tasks: tuple[TaskView, ...]
    used: UsageTotal

    @property
    def versions(self) -> int:
        """How many versions of paths there are."""
        return sum(each.versions for each in self.actors)

    @property
    def refusals(self) -> int:
        """How often somebody was refused."""
        return sum(each.refused for each in self.actors)


def read_report(journal: Journal, after: int, until: int) -> Report:
    """What happened in ``journal`` after row ``after`` up to row ``until``. Raises `JournalError`."""
    changed = journal.changed_paths(after, until, zones=(*COMPARED, "request", "command", "revert"))
    work = [each for each in changed if each.zone in COMPARED]
    most_changed = sorted(work, key=lambda each: -each.versions)[:MOST_PATHS]
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
        needs[:MOST_ROWS],
        len(needs),
        tuple(task for task in later.tasks if task.ended is None),
        later.usage.team.minus(earlier.usage.team),
    )


def _count_by_actor(
    changed: Iterable[ChangedPath], earlier: Model, later: Model, listed: Sequence[Row]
) -> tuple[ActorReport, ...]:
    """What each actor did, the most first. Of one who is no agent the refusals that are ``listed`` count."""
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
    """What each agent used that used anything meanwhile."""
    before = earlier.usage.agents
    found = {name: used.minus(before.get(name, UsageTotal())) for name, used in later.usage.agents.items()}
    return {name: used for name, used in found.items() if used.tokens or used.cost}


def _read_refused(journal: Journal, after: int, until: int) -> tuple[Row, ...]:
    found = [
        row
        for outcome in _REFUSALS
        for row in journal.rows_before(
            until + 1, limit=MOST_ROWS, only=RowFilter(outcome=outcome, after=after)
        )
    ]
    return tuple(sorted(found, key=lambda row: -row.seq)[:MOST_ROWS])


def _read_decisions(
    journal: Journal, after: int, until: int, changed: Iterable[ChangedPath]
) -> tuple[Decision, ...]:
    people = PeopleReader(journal)
    topic = journal.topic(SETTLED, after=after, until=until, limit=MOST_ROWS)
    settled = [Decision(row) for row in topic if people.counts(row)]
    closed = sorted((each for each in changed if each.zone == "request" and each.last > 1), key=_newest_first)
    for each in closed[:MOST_ROWS]:
        asked = journal.version("request", each.path, 1)
        ended = find_request_end(journal, people, each.path)
        if asked is not None and ended is not None and ended.kind == "human" and after < ended.seq <= until:
            settled.append(Decision(ended, RequestView(asked, ended)))
    return tuple(sorted(settled, key=lambda each: -each.row.seq)[:MOST_ROWS])


def _read_reverts(
    journal: Journal, changed: Iterable[ChangedPath], people: PeopleReader
) -> tuple[RevertReport, ...]:
    begun = sorted((each for each in changed if each.zone == "revert" and each.first == 1), key=_newest_first)
    rows = [journal.version("revert", each.path, 1) for each in begun[:MOST_ROWS]]
    counting = [row for row in rows if row is not None and people.counts(row)]
    return tuple(RevertReport(row, _find_record(journal, row)) for row in counting)


def _find_record(journal: Journal, row: Row) -> RevertRecord | None:
    try:
        return read_record(journal, row.path)
    except JournalDamaged:
        return None


def _newest_first(changed: ChangedPath) -> int:
    return -changed.seq
