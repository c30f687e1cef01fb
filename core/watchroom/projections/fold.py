"""Folds rows, one after another, into the `Model`. A row costs the same however many came before."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from watchroom.errors import JournalDamaged, JournalError
from watchroom.model import IDENTIFY, SHARED, Json, Outcome, Row, Zone, is_step, outcome_of
from watchroom.projections.agents import AgentView
from watchroom.projections.budgets import BudgetProjection
from watchroom.projections.buffers import BufferProjection
from watchroom.projections.client_calls import ClientFileProjection
from watchroom.projections.configuration import CONFIG_ZONES, ConfigProjection
from watchroom.projections.decisions import DecisionProjection
from watchroom.projections.fold_state import State, dump_state, kept_attributes, load_state
from watchroom.projections.model import (
    BUCKETS,
    ActivityEntry,
    BoardView,
    DocumentView,
    Model,
    SharedFile,
    bucket_of,
)
from watchroom.projections.needs import NeedProjection
from watchroom.projections.processes import ProcessProjection, is_loss
from watchroom.projections.seals import SealView, seal_after
from watchroom.projections.sessions import RequestProjection, RequestView, SessionProjection
from watchroom.projections.tasks import TaskProjection
from watchroom.projections.timeline import TimelineProjection
from watchroom.projections.usage import UsageProjection
from watchroom.rules.client_calls import client_call
from watchroom.rules.config import Agent, Config
from watchroom.rules.conflicts import ConflictTracker, ConflictView
from watchroom.rules.damage import DamageRule, find_damage
from watchroom.rules.decisions import as_undecided, is_reported, takes_effect
from watchroom.rules.effects import effect_of
from watchroom.rules.handoffs import Delivery, delivers
from watchroom.rules.readings import is_reading
from watchroom.rules.stops import stopped_after
from watchroom.rules.usage import is_subagent_step

RECENT: Final = 400
"""How many of the newest rows the model carries."""

KEPT_DELIVERIES: Final = 500
"""So many acknowledged deliveries the model carries: those that were acknowledged last."""
FORMAT: Final = 8
"""Of what `Fold.dump` gives. Another one whenever what is kept, or what rows come to mean, changes: what was
dumped before is folded anew."""
_READ_BY_COLUMNS: Final[frozenset[Zone]] = frozenset({"collab", "board", "handoff", "realtime"})
"""Zones whose views need no detail of a row."""
_OWN: Final = "fold"
_NOT_KEPT: Final = frozenset({"_contents", "_lookup", "_handlers", "_model", "_changed"})
_MADE_ANEW: Final = ("deliveries", "files", "documents", "boards")
_log = logging.getLogger("watchroom")


class Fold:
    """Take rows in order with `apply`; return the model of all rows so far with `model`.

    No row ends the fold, whatever it contains. A row that breaks a rule of `watchroom.rules.damage` is set
    aside: it is shown and becomes a need, and only the projections that read nothing but its columns take it
    in. That check comes before any projection, so such a row is never half applied. `apply` catches every
    other exception that a row causes: this is the one place that isolates faults of projections. A fault is a
    defect: the projections that come before it have taken the row in. It is logged with its traceback and
    becomes the same need.

    ``content`` and ``lookup`` fetch the content and the row of a number: of the config, of requests and their
    answers, and what signed decisions are about. Without ``lookup`` no signed decision counts. ::

        fold = Fold(journal.content, journal.row)
        while rows := journal.rows(fold.seq):
            fold.apply(rows)
        model = fold.model()
    """

    def __init__(
        self,
        content: Callable[[int], str | None],
        lookup: Callable[[int], Row | None] = lambda seq: None,
    ) -> None:
        self._contents = _Contents(content)
        self._lookup = lookup
        self._seq = 0
        self._time = 0
        self._agents: dict[str, AgentView] = {}
        self._recent: deque[Row] = deque(maxlen=RECENT)
        self._newest: deque[Row] = deque(maxlen=RECENT)
        self._log: deque[ActivityEntry] = deque(maxlen=RECENT)
        self._deliveries: dict[str, Delivery] = {}
        self._acknowledged: dict[str, None] = {}
        """The paths of those that were acknowledged, the last one last."""
        self._files: dict[str, SharedFile] = {}
        self._documents: dict[str, DocumentView] = {}
        self._boards: dict[str, BoardView] = {}
        self._leases: dict[str, Row] = {}
        self._outcomes: dict[Outcome, int] = {}
        self._activity: dict[int, int] = {}
        self._conflicts = ConflictTracker()
        self._requests = RequestProjection()
        self._decisions = DecisionProjection()
        self._sessions = SessionProjection()
        self._tasks = TaskProjection()
        self._buffers = BufferProjection()
        self._client_files = ClientFileProjection()
        self._processes = ProcessProjection()
        self._usage = UsageProjection()
        self._budgets = BudgetProjection()
        self._timeline = TimelineProjection()
        self._stopped: Mapping[str, int] = {}
        self._seal: SealView | None = None
        self._config = ConfigProjection()
        self._needs = NeedProjection()
        self._model = Model()
        self._changed: set[str] = set()
        self._handlers: dict[Zone, Callable[[Row], None]] = {
            "request": self._apply_to_request,
            "collab": self._apply_to_file,
            "board": self._apply_to_board,
            "lease": self._apply_to_lease,
            "handoff": self._apply_to_delivery,
            "realtime": self._apply_to_document,
            "workspace": self._apply_to_workspace,
        }

    @classmethod
    def load(
        cls, content: Callable[[int], str | None], lookup: Callable[[int], Row | None], dumped: Json
    ) -> Self:
        """Return the fold that was ``dumped``; ``content`` and ``lookup`` as of a new one. Raise ValueError
        if it is of another `FORMAT`, or is no fold."""
        if not isinstance(dumped, Mapping) or dumped.get("format") != FORMAT:
            raise ValueError("a fold of another format")
        fold, state = cls(content, lookup), load_state(dumped)
        parts = fold._parts()
        if {part: {*names} for part, names in fold._state().items()} != {
            part: {*names} for part, names in state.items()
        }:
            raise ValueError("a fold of other parts")
        vars(fold).update(state[_OWN])
        for name, part in parts.items():
            vars(part).update(state[name])
            vars(part).update(part.DERIVED)
        fold._changed.update(_MADE_ANEW)
        return fold

    def dump(self) -> dict[str, Json]:
        """All that it took from the rows so far, as JSON: `load` gives a fold that goes on as this one does.
        A row stands in it once, a text of a row never."""
        return {"format": FORMAT, **dump_state(self._state())}

    def _state(self) -> State:
        parts = self._parts()
        own = {name: value for name, value in vars(self).items() if name not in parts}
        kept = {name: value for name, value in own.items() if name not in _NOT_KEPT}
        return {_OWN: kept, **{name: kept_attributes(part) for name, part in parts.items()}}

    def _parts(self) -> dict[str, Any]:
        """The projections, each by the name of its attribute."""
        return {name: part for name, part in vars(self).items() if hasattr(part, "DERIVED")}

    @property
    def seq(self) -> int:
        """The number of the last row taken in."""
        return self._seq

    @property
    def newest_row(self) -> Row | None:
        """The last row taken in, None before the first."""
        return self._newest[-1] if self._newest else None

    def apply(self, rows: Iterable[Row]) -> None:
        """Take in ``rows``, the next ones in order."""
        for row in rows:
            self._contents.load(self._config.contents_needed(row))
            damage = find_damage(row)
            try:
                if damage:
                    self._set_aside(row, damage)
                elif is_step(row) and effect_of(row) in (None, "identify"):
                    self._apply_step(row)
                elif client_call(row) is not None:
                    self._apply_client_call(row)
                else:
                    self._apply(row)
            except Exception as error:
                # See the docstring of the class.
                if isinstance(error, JournalError) and not isinstance(error, JournalDamaged):
                    raise
                _log.exception("row %d cannot be read", row.seq)
                if self._seq != row.seq:
                    self._begin(row)
                self._needs.open_unreadable(row, "damage_fault")

    def _begin(self, row: Row) -> None:
        """Count ``row``, whatever it says. Nothing that comes after it asks the journal: an outage leaves no
        row half applied, and the caller can apply the same row again."""
        self._seq = row.seq
        self._time = row.time
        outcome = outcome_of(row)
        self._outcomes[outcome] = self._outcomes.get(outcome, 0) + 1
        self._newest.append(row)
        self._timeline.apply(row)

    def _set_aside(self, row: Row, damage: DamageRule) -> None:
        """Take in ``row``, which cannot be read because of ``damage``. It is shown, and decides nothing. What
        its columns say alone, that a path has a new version, holds."""
        flaw = ""
        if row.zone in SHARED:
            flaw = self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._needs.open_unreadable(row, damage)
        self._show(row)
        if row.zone in SHARED:
            # As the zones decide it, which read no more of the row than this does.
            self._conflicts.apply(row if takes_effect(row, flaw) else as_undecided(row))
        if row.zone in _READ_BY_COLUMNS:
            self._handlers[row.zone](row)
        self._buffers.apply(row)
        if row.zone == "config" and row.version is not None:
            self._apply_to_config(row, "")

    def _apply_step(self, row: Row) -> None:
        if row.tool == IDENTIFY:
            # What people sign names the workspace by the id that Watchroom itself may have given it.
            self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._seal = seal_after(self._seal, row)
        self._tasks.apply_step(row)
        self._usage.apply_step(row)
        self._budgets.apply_step(row)
        if row.zone == "session" and not is_subagent_step(row):
            self._processes.apply_step(row)
            self._apply_to_session(row)
            self._needs.apply_step(row)

    def _apply_client_call(self, row: Row) -> None:
        """Take in ``row``, with which a call of a client's own tool ends: a step and an operation."""
        self._apply_step(row)
        self._show(row)
        call, view = client_call(row), self._agents.get(row.actor)
        if call is None:
            return
        self._client_files.apply(row, call)
        if view is not None:
            self._agents[row.actor] = view._replace(
                client_calls=view.client_calls + 1, client_edits=view.client_edits + call.is_edit
            )

    def _apply(self, row: Row) -> None:
        flaw = self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._show(row)
        counts = takes_effect(row, flaw)
        # A row that does not count settles, resumes and ends nothing.
        counting = row if counts else as_undecided(row)
        if is_reported(row, flaw):
            self._needs.open_forged(row, flaw)
        if row.zone in SHARED:
            self._conflicts.apply(counting)
        if row.zone in self._handlers and (counts or row.zone != "request"):
            self._handlers[row.zone](row)
        if counts:
            self._stopped = stopped_after(self._stopped, row)
        self._buffers.apply(row)
        self._processes.apply(counting)
        self._needs.apply(row, counts=counts, is_known=is_reported(row, flaw))
        if row.zone in CONFIG_ZONES and row.version is not None:
            self._apply_to_config(row, flaw)
        for agent in self._tasks.apply(counting):
            self._end_agent(agent)

    def _show(self, row: Row) -> None:
        self._recent.append(row)
        self._log_activity(row)
        self._count(self._activity, row.time)
        self._apply_to_agent(row)

    def model(self) -> Model:
        """The model of all rows so far. Parts that did not change are those of the model before."""
        before = self._model
        if before.seq == self._seq:
            return before
        conflicts = self._conflicts.current()
        requests, ended_requests = self._requests.current()
        work = self._processes.current()
        self._tasks.mark_lost_tasks(self._processes.lost_tasks())
        self._model = Model(
            seq=self._seq,
            time=self._time,
            agents=tuple(self._agents.values()),
            needs=self._needs.current(conflicts, requests, work),
            conflicts=conflicts,
            requests=requests,
            ended_requests=ended_requests,
            recent=tuple(reversed(self._recent)),
            activity_log=tuple(reversed(self._log)),
            newest=tuple(reversed(self._newest)),
            deliveries=tuple(reversed(self._deliveries.values()))
            if "deliveries" in self._changed
            else before.deliveries,
            files=self._files_with(conflicts)
            if "files" in self._changed or conflicts is not before.conflicts
            else before.files,
            documents=tuple(document for _, document in sorted(self._documents.items()))
            if "documents" in self._changed
            else before.documents,
            boards=tuple(board for _, board in sorted(self._boards.items()))
            if "boards" in self._changed
            else before.boards,
            work=work,
            usage=self._usage.current(),
            budgets=self._budgets.current(),
            leases=self._leases,
            stopped=self._stopped,
            tasks=self._tasks.tasks(),
            messages=self._tasks.messages(),
            commands=self._tasks.commands(),
            buffers=self._buffers.current(),
            client_files=self._client_files.current(),
            outcomes=dict(self._outcomes),
            activity=dict(self._activity),
            timeline=self._timeline.current(),
            people=self._decisions.people,
            seal=self._seal,
        )
        self._changed.clear()
        return self._model

    def _files_with(self, conflicts: tuple[ConflictView, ...]) -> tuple[SharedFile, ...]:
        """The shared files by path, each with the number of its open conflicts."""
        counts = Counter(each.path for each in conflicts if each.zone == "collab")
        for path, file in self._files.items():
            if file.conflicts != counts[path]:
                self._files[path] = file._replace(conflicts=counts[path])
        return tuple(file for _, file in sorted(self._files.items()))

    def _log_activity(self, row: Row) -> None:
        readings = int(is_reading(row))
        if readings and self._log and self._log[-1].readings:
            readings += self._log.pop().readings
        self._log.append(ActivityEntry(row, readings))

    def _apply_to_agent(self, row: Row) -> None:
        view = self._agents.get(row.actor)
        if view is None:
            return
        activity = dict(view.activity)
        self._count(activity, row.time)
        self._agents[row.actor] = view._replace(
            last=row,
            last_act=view.last_act if is_reading(row) else row,
            rows=view.rows + 1,
            refused=view.refused + (outcome_of(row) != "ok"),
            activity=activity,
            last_heard=row.time,
        )

    def _apply_to_request(self, row: Row) -> None:
        self._requests.apply(row)
        agent = row.path.partition("/")[0]
        view = self._agents.get(agent)
        if view is not None and row.version is not None:
            asked = RequestView(row) if row.version == 1 else None
            if asked is not None or (view.request is not None and view.request.row.path == row.path):
                self._agents[agent] = view._replace(request=asked)

    def _apply_to_session(self, row: Row) -> None:
        session = self._sessions.apply(row)
        view = self._agents.get(row.actor)
        if session is None or view is None:
            return
        is_new_step = row.version is not None
        is_same = not is_new_step and view.session is not None and view.session.presence == session.presence
        self._agents[row.actor] = view._replace(
            session=session,
            last_heard=row.time,
            is_lost=view.is_lost and is_same,
            is_present=view.is_present or not is_same,
        )

    def _apply_to_workspace(self, row: Row) -> None:
        """Nobody goes on with what a process ran that is gone."""
        if not is_loss(row):
            return
        work = self._processes.current().get(row.path)
        if work is not None:
            last = self._processes.last_sign(row.path)
            self._needs.lose(row, work, last.time if last else row.time)
            self._tasks.mark_lost_commands(work.commands)
        for agent, view in self._agents.items():
            if view.session is not None and view.session.presence == row.path:
                self._agents[agent] = view._replace(is_present=False, is_lost=view.is_unfinished)

    def _end_agent(self, agent: str) -> None:
        self._processes.end_agent(agent)
        self._needs.end_agent(agent)
        if agent in self._agents:
            self._agents[agent] = self._agents[agent]._replace(is_ended=True, is_lost=False)

    @staticmethod
    def _count(activity: dict[int, int], time: int) -> None:
        bucket = bucket_of(time)
        if bucket not in activity:
            for old in [each for each in activity if each <= bucket - BUCKETS]:
                del activity[old]
        activity[bucket] = activity.get(bucket, 0) + 1

    def _apply_to_config(self, row: Row, flaw: str) -> None:
        config = self._config.apply(row, flaw, self._contents.read)
        if config is not None:
            self._register(config)
        if not self._config.is_valid:
            if row.zone == "config":
                self._needs.open_invalid_config(row)
            return
        unsigned = self._config.find_need(self._contents.read)
        if unsigned is not None:
            self._needs.open_unsigned_settings(*unsigned)
        else:
            self._needs.close_unsigned_settings()

    def _register(self, config: Config) -> None:
        self._agents = {
            agent.id: _registered(self._agents.get(agent.id), agent) for agent in config.agents.values()
        }
        self._tasks.register(config.agents.values())
        self._processes.register(config.agents.values())
        self._usage.register(config.agents.values())
        self._needs.register(config.agents.values())
        self._budgets.register(config.budgets, config.agents.values())

    def _apply_to_file(self, row: Row) -> None:
        if row.version is not None:
            self._files[row.path] = SharedFile(row.path, row)
            self._changed.add("files")

    def _apply_to_board(self, row: Row) -> None:
        if row.version is not None:
            known = self._boards.get(row.path)
            writers = _newest_first(row.actor, known.writers if known else ())
            self._boards[row.path] = BoardView(row.path, row, writers)
            self._changed.add("boards")

    def _apply_to_lease(self, row: Row) -> None:
        if row.version is not None:
            leases = {board: held for board, held in self._leases.items() if board != row.path}
            self._leases = leases if row.deleted else {**leases, row.path: row}

    def _apply_to_document(self, row: Row) -> None:
        if row.version is None:
            return
        known = self._documents.get(row.path) or DocumentView(row.path, row, row)
        writers, activity = _newest_first(row.actor, known.writers), dict(known.activity)
        self._count(activity, row.time)
        self._documents[row.path] = known._replace(newest=row, writers=writers, activity=activity)
        self._changed.add("documents")

    def _apply_to_delivery(self, row: Row) -> None:
        if delivers(row):
            # The order of the dictionary is that of delivery, so a new delivery goes to its end.
            self._deliveries.pop(row.path, None)
            self._acknowledged.pop(row.path, None)
            if not row.deleted:
                self._deliveries[row.path] = Delivery.from_row(row)
        elif row.path in self._deliveries:
            self._deliveries[row.path] = self._deliveries[row.path].advance(row)
            self._forget_acknowledged(row.path)
        self._changed.add("deliveries")

    def _forget_acknowledged(self, path: str) -> None:
        """All that are open are kept, and so many of the others."""
        if self._deliveries[path].acknowledged is None or path in self._acknowledged:
            return
        self._acknowledged[path] = None
        if len(self._acknowledged) > KEPT_DELIVERIES:
            oldest = next(iter(self._acknowledged))
            del self._acknowledged[oldest], self._deliveries[oldest]


class _Contents:
    """The contents of rows, by ``content``. `load` reads before a row changes any projection: an outage of
    the journal then leaves no row half applied, and the caller can apply the same row again."""

    def __init__(self, content: Callable[[int], str | None]) -> None:
        self._content = content
        self._loaded: dict[int, str | JournalDamaged | None] = {}

    def load(self, numbers: Iterable[int]) -> None:
        """Read the contents of the rows ``numbers``. Raise `JournalError` if the journal cannot be asked."""
        self._loaded = {number: self._fetch(number) for number in numbers}

    def read(self, number: int) -> str | None:
        """Return the content of row ``number``, None if it has none. Raise `JournalDamaged`."""
        text = self._loaded[number] if number in self._loaded else self._fetch(number)
        if isinstance(text, JournalDamaged):
            raise text
        return text

    def find(self, number: int) -> str | None:
        """Return the content of row ``number``, None if it has none or its content is damaged."""
        text = self._loaded[number] if number in self._loaded else self._fetch(number)
        return None if isinstance(text, JournalDamaged) else text

    def _fetch(self, number: int) -> str | JournalDamaged | None:
        try:
            return self._content(number)
        except JournalDamaged as damage:
            return damage


def _registered(known: AgentView | None, agent: Agent) -> AgentView:
    """The view of ``agent`` as it is registered now; a new task is a new beginning."""
    if known is None:
        return AgentView(agent)
    return known._replace(agent=agent, is_ended=known.is_ended and known.agent.task == agent.task)


def _newest_first(writer: str, before: tuple[str, ...]) -> tuple[str, ...]:
    return before if before[:1] == (writer,) else (writer, *(each for each in before if each != writer))
