"""The fold: applies rows in order, and returns the `Model` of all rows so far.

The cost of a row does not depend on the number of rows before it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from watchroom.errors import InvalidSeal, JournalDamaged, JournalError
from watchroom.features.boards.rows import BOARD_ZONE
from watchroom.features.boards.view import BoardProjection
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.budgets.view import BudgetProjection, UsageProjection
from watchroom.features.buffers.view import BufferProjection
from watchroom.features.checks.rows import CHECK_ZONE, is_check
from watchroom.features.config.rows import Config
from watchroom.features.documents.rows import DOCUMENT_ZONE
from watchroom.features.documents.view import DocumentProjection
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.files.view import FileProjection
from watchroom.features.handoffs.rows import HANDOFF_ZONE
from watchroom.features.handoffs.view import DeliveryProjection
from watchroom.features.needs.damage import DamageRule, find_damage
from watchroom.features.overview.agents import AgentProjection, find_quiet_trees, is_being_settled
from watchroom.features.overview.client_files import ClientFileProjection
from watchroom.features.overview.configuration import CONFIG_ZONES, ConfigProjection
from watchroom.features.overview.edit_rows import find_reported_read
from watchroom.features.overview.fold_state import State, dump_state, kept_attributes, load_state
from watchroom.features.overview.model import ActivityEntry, Model, SealView
from watchroom.features.overview.needs import NeedProjection
from watchroom.features.overview.processes import ProcessProjection, is_loss
from watchroom.features.overview.timeline import TimelineProjection, is_reading
from watchroom.features.people.decisions import is_reported, takes_effect
from watchroom.features.people.rules import effect_of
from watchroom.features.people.view import DecisionProjection
from watchroom.features.plans.rows import PLAN_ZONE
from watchroom.features.plans.view import PlanProjection
from watchroom.features.sessions.rows import client_call
from watchroom.features.sessions.rules import stopped_after
from watchroom.features.sessions.view import RequestProjection, SessionProjection
from watchroom.features.tasks.view import TaskProjection
from watchroom.features.trees.comments import CommentProjection
from watchroom.features.trees.rows import REPO, TREE, is_landing_path
from watchroom.features.trees.view import TreeProjection
from watchroom.kernel.rules.activity import count_activity
from watchroom.kernel.rules.conflicts import ConflictTracker, ConflictView, as_undecided
from watchroom.kernel.rules.seal_note import parse_seal
from watchroom.kernel.zones import SHARED
from watchroom.model import (
    CHECKPOINT,
    IDENTIFY,
    SEEN,
    Json,
    Outcome,
    Row,
    Zone,
    is_of_journal,
    is_step,
    outcome_of,
)

RECENT: Final = 400
"""The number of newest rows in the model."""

FORMAT: Final = 18
"""The format of `Fold.dump`. Increase it when a projection keeps other data, or when rows get another
meaning. Older snapshots are then written again."""
_READ_BY_COLUMNS: Final[frozenset[Zone]] = frozenset(
    {SHARED_FILE_ZONE, BOARD_ZONE, HANDOFF_ZONE, DOCUMENT_ZONE, REPO}
)
"""Zones whose projections read only the columns of a row, and not its detail."""
_OWN: Final = "fold"
_NOT_KEPT: Final = frozenset({"_contents", "_lookup", "_by_zone", "_model"})
_log = logging.getLogger("watchroom")


class Fold:
    """Applies rows in order with `apply`, and returns the model of all rows so far with `model`.

    Each row is one of four kinds:

    - A damaged row breaks a rule of `watchroom.features.needs.damage`. It is shown and becomes a need. Only
      projections that read nothing but its columns apply it.
    - A step of a session goes to tasks, usage, budgets, processes, sessions and needs.
    - A call of a client's own tool is a step and an operation. It also goes to agents and client files.
    - Every other row is an operation. `_apply_operation` shows which projections apply it. Projections of a
      single zone are in ``_by_zone``.

    No row can stop the fold. Damage is found before any projection applies the row, so a damaged row is never
    half applied. `apply` also catches every other exception: this is the only place that isolates faults of
    projections. Such a fault is a bug, because earlier projections have already applied the row. It is logged
    with its traceback, and becomes the same need.

    - ``content``: returns the content of a row by its number. Used for the config, for requests and their
      answers, and for signed decisions.
    - ``lookup``: returns a row by its number, to check signed decisions. Without it, none counts.

    Example::

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
        self._recent: deque[Row] = deque(maxlen=RECENT)
        self._newest: deque[Row] = deque(maxlen=RECENT)
        self._log: deque[ActivityEntry] = deque(maxlen=RECENT)
        self._outcomes: dict[Outcome, int] = {}
        self._activity: dict[int, int] = {}
        self._stopped: Mapping[str, int] = {}
        self._seal: SealView | None = None
        self._has_checks = False
        self._agents = AgentProjection()
        self._files = FileProjection(SHARED_FILE_ZONE)
        self._trees = TreeProjection()
        self._comments = CommentProjection()
        self._tree_files = FileProjection(REPO)
        self._boards = BoardProjection()
        self._documents = DocumentProjection()
        self._deliveries = DeliveryProjection()
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
        self._config = ConfigProjection()
        self._needs = NeedProjection()
        self._plans = PlanProjection()
        self._waiting: tuple[ConflictView, ...] = ()
        """The conflicts that people must settle."""
        self._model = Model()
        self._by_zone: dict[Zone, Callable[[Row], None]] = {
            SHARED_FILE_ZONE: self._files.apply,
            TREE: self._apply_to_tree,
            REPO: self._tree_files.apply,
            PLAN_ZONE: self._needs.apply_plan,
            BOARD_ZONE: self._boards.apply,
            "lease": self._boards.apply_lease,
            HANDOFF_ZONE: self._deliveries.apply,
            DOCUMENT_ZONE: self._documents.apply,
            "request": self._apply_to_request,
            "workspace": self._apply_to_workspace,
        }

    @classmethod
    def load(
        cls, content: Callable[[int], str | None], lookup: Callable[[int], Row | None], dumped: Json
    ) -> Self:
        """Return the fold that was ``dumped``. ``content`` and ``lookup``: as for a new fold. Raise
        ValueError if ``dumped`` is not a fold, or has another `FORMAT`."""
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
        return fold

    def dump(self) -> dict[str, Json]:
        """Return the state of the fold as JSON, for `load`. Each row is written once. Contents are not
        written."""
        return {"format": FORMAT, **dump_state(self._state())}

    def _state(self) -> State:
        parts = self._parts()
        own = {name: value for name, value in vars(self).items() if name not in parts}
        kept = {name: value for name, value in own.items() if name not in _NOT_KEPT}
        return {_OWN: kept, **{name: kept_attributes(part) for name, part in parts.items()}}

    def _parts(self) -> dict[str, Any]:
        """Return the projections by the names of their attributes."""
        return {name: part for name, part in vars(self).items() if hasattr(part, "DERIVED")}

    @property
    def seq(self) -> int:
        """The number of the last applied row."""
        return self._seq

    @property
    def newest_row(self) -> Row | None:
        """The last applied row, None before the first."""
        return self._newest[-1] if self._newest else None

    def apply(self, rows: Iterable[Row]) -> None:
        """Apply ``rows``, which must be the next rows in order."""
        for row in rows:
            of_tree = [row.seq] if row.zone == TREE and row.version is not None else []
            self._contents.load([*self._config.contents_needed(row), *of_tree])
            damage = find_damage(row)
            try:
                if damage:
                    self._apply_damaged(row, damage)
                elif is_step(row) and effect_of(row) in (None, "identify"):
                    self._apply_step(row)
                elif client_call(row) is not None:
                    self._apply_client_call(row)
                else:
                    self._apply_operation(row)
            except Exception as error:
                # See the docstring of the class.
                if isinstance(error, JournalError) and not isinstance(error, JournalDamaged):
                    raise
                _log.exception("row %d cannot be read", row.seq)
                if self._seq != row.seq:
                    self._begin(row)
                self._needs.open_unreadable(row, "damage_fault")

    def _begin(self, row: Row) -> None:
        """Count ``row``. Code after this must not read from the journal.

        So no row is half applied if the journal fails, and the caller can apply the same row again.
        """
        self._seq = row.seq
        self._time = row.time
        outcome = outcome_of(row)
        self._outcomes[outcome] = self._outcomes.get(outcome, 0) + 1
        self._newest.append(row)
        self._timeline.apply(row)

    def _apply_damaged(self, row: Row, damage: DamageRule) -> None:
        """Apply the columns of ``row``, whose detail cannot be read because of ``damage``. The row takes no
        effect, but its path has a new version."""
        flaw = ""
        if row.zone in SHARED:
            flaw = self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._needs.open_unreadable(row, damage)
        self._show(row)
        if row.zone in SHARED:
            # The services also decide by these columns.
            self._conflicts.apply(row if takes_effect(row, flaw) else as_undecided(row))
        if row.zone in _READ_BY_COLUMNS:
            self._by_zone[row.zone](row)
        self._buffers.apply(row)
        if row.zone == "config" and row.version is not None:
            self._apply_to_config(row, "")

    def _apply_step(self, row: Row) -> None:
        if row.tool == IDENTIFY:
            # Signed decisions contain the workspace's id, which Watchroom may have assigned.
            self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._seal = _newest_seal(self._seal, row)
        self._tasks.apply_step(row)
        self._usage.apply_step(row)
        self._budgets.apply_step(row)
        if row.zone == "session" and not is_subagent_step(row):
            self._processes.apply_step(row)
            session = self._sessions.apply(row)
            if session is not None:
                self._agents.apply_session(row, session)
            self._needs.apply_step(row)

    def _apply_client_call(self, row: Row) -> None:
        self._apply_step(row)
        self._show(row)
        call = client_call(row)
        if call is not None:
            self._client_files.apply(row, call)
            self._agents.apply_client_call(row, call)

    def _apply_operation(self, row: Row) -> None:
        flaw = self._decisions.apply(row, self._contents.find, self._lookup)
        self._begin(row)
        self._show(row)
        counts = takes_effect(row, flaw)
        # A decision that does not count does not settle, resume or end anything.
        counting = row if counts else as_undecided(row)
        if is_reported(row, flaw):
            self._needs.open_forged(row, flaw)
        if row.zone in SHARED:
            self._conflicts.apply(counting)
            self._needs.apply_landing(row)
        if row.zone in self._by_zone and (counts or row.zone != "request"):
            self._by_zone[row.zone](row)
        if counts:
            self._stopped = stopped_after(self._stopped, row)
            self._agents.apply_control(row)
            self._apply_check(row)
            self._agents.apply_hand_over(row)
        self._buffers.apply(row)
        self._plans.apply(row)
        self._processes.apply(counting)
        self._needs.apply(row, counts=counts, is_known=is_reported(row, flaw))
        if row.zone in CONFIG_ZONES and row.version is not None:
            self._apply_to_config(row, flaw)
        for agent in self._tasks.apply(counting):
            self._processes.end_agent(agent)
            self._needs.end_agent(agent)
            self._agents.end(agent)

    def _apply_check(self, row: Row) -> None:
        """Apply ``row`` if it is about a check, or if a person accepts work that no check has proven."""
        if is_check(row):
            self._agents.apply_check(row)
            self._needs.apply_check(row)
        elif row.tool == SEEN and row.zone == CHECK_ZONE and row.detail.get("need") == "unproven":
            self._agents.accept_check(row)

    def _show(self, row: Row) -> None:
        """Add ``row`` to the lists of recent rows, and to its agent's operations."""
        reading = is_reading(row)
        self._log_row(row, int(reading))
        self._recent.append(row)
        count_activity(self._activity, row.time)
        if not (row.zone == REPO and is_landing_path(row.path)):
            # The conflict of a landing names the author of the lines, who has done nothing now.
            self._agents.apply(row, is_reading=reading)

    def _log_row(self, row: Row, readings: int) -> None:
        """Add ``row`` to the activity list. ``readings``: 1 if it is a read, else 0."""
        last = self._log[-1] if self._log else None
        reported = find_reported_read(row, reversed(self._recent))
        if reported is not None:
            # The call was already counted.
            if last is not None and last.row.seq == reported.seq:
                self._log[-1] = last._replace(row=row)
            return
        if readings and last is not None and last.readings and last.row.actor == row.actor:
            readings += self._log.pop().readings
        self._log.append(ActivityEntry(row, readings))

    def _apply_to_tree(self, row: Row) -> None:
        self._comments.apply(row)
        self._needs.apply_prediction(row)
        self._trees.apply(row, self._contents.find(row.seq) if row.version is not None else None)

    def _apply_to_request(self, row: Row) -> None:
        self._requests.apply(row)
        self._agents.apply_request(row)

    def _apply_to_workspace(self, row: Row) -> None:
        """Apply ``row``. If it reports a dead process, mark its agents and commands as lost until another
        process resumes them."""
        if not is_loss(row):
            return
        work = self._processes.current().get(row.path)
        if work is not None:
            last = self._processes.last_sign(row.path)
            self._needs.lose(row, work, last.time if last else row.time)
            self._tasks.mark_lost_commands(work.commands)
        self._agents.lose(row.path)

    def _apply_to_config(self, row: Row, flaw: str) -> None:
        config = self._config.apply(row, flaw, self._contents.read)
        if config is not None:
            self._register(config)
        if not self._config.is_valid:
            if row.zone == "config":
                self._needs.open_invalid_config(row)
            return
        unsigned = self._config.find_unsigned(self._contents.read)
        if unsigned is not None:
            self._needs.open_unsigned_settings(*unsigned)
        else:
            self._needs.close_unsigned_settings()

    def _register(self, config: Config) -> None:
        agents = config.agents.values()
        self._has_checks = bool(config.checks)
        self._agents.register(agents)
        self._tasks.register(agents)
        self._processes.register(agents)
        self._usage.register(agents)
        self._needs.register(agents)
        self._budgets.register(config.budgets, agents)

    def model(self) -> Model:
        """Return the model of all rows so far. Unchanged parts are the same objects as before."""
        if self._model.seq == self._seq:
            return self._model
        conflicts = self._conflicts.current()
        requests, ended_requests = self._requests.current()
        work = self._processes.current()
        self._tasks.mark_lost_tasks(self._processes.lost_tasks())
        agents = self._agents.current()
        trees, tree_files = self._trees.current(), self._tree_files.current(conflicts)
        predictions = self._trees.predictions()
        quiet = find_quiet_trees(trees, agents) if predictions else frozenset()
        known = {each.agent.id: each for each in agents} if conflicts else {}
        waiting = tuple(each for each in conflicts if not is_being_settled(each, known.get(each.actor)))
        # Keep the same object if nothing changed, because the needs compare it by identity.
        self._waiting = self._waiting if waiting == self._waiting else waiting
        sessions = (each.session for each in agents if each.session is not None)
        plans = self._plans.current(sessions, frozenset(each.agent.id for each in agents if each.is_ended))
        planned = frozenset(each.row.seq for each in plans.values())
        self._model = Model(
            seq=self._seq,
            time=self._time,
            agents=agents,
            needs=self._needs.current(self._waiting, requests, work, quiet, planned),
            conflicts=conflicts,
            requests=requests,
            ended_requests=ended_requests,
            recent=tuple(reversed(self._recent)),
            activity_log=tuple(reversed(self._log)),
            newest=tuple(reversed(self._newest)),
            deliveries=self._deliveries.current(),
            files=self._files.current(conflicts),
            trees=trees,
            tries=self._trees.tries(),
            predictions=predictions,
            comments=self._comments.current(),
            tree_files=tree_files,
            documents=self._documents.current(),
            boards=self._boards.current(),
            work=work,
            usage=self._usage.current(),
            budgets=self._budgets.current(),
            leases=self._boards.leases(),
            stopped=self._stopped,
            is_everybody_stopped=self._agents.is_everybody_stopped,
            tasks=self._tasks.tasks(),
            messages=self._tasks.messages(),
            commands=self._tasks.commands(),
            buffers=self._buffers.current(),
            plans=plans,
            client_files=self._client_files.current(trees, tree_files),
            outcomes=dict(self._outcomes),
            activity=dict(self._activity),
            timeline=self._timeline.current(),
            people=self._decisions.people,
            seal=self._seal,
            has_checks=self._has_checks,
        )
        return self._model


class _Contents:
    """The contents of rows, returned by ``content``.

    `load` reads them before a row changes any projection. So no row is half applied if the journal fails, and
    the caller can apply the same row again.
    """

    def __init__(self, content: Callable[[int], str | None]) -> None:
        self._content = content
        self._loaded: dict[int, str | JournalDamaged | None] = {}

    def load(self, numbers: Iterable[int]) -> None:
        """Read the contents of the rows ``numbers``. Raise `JournalError` if the journal fails."""
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


def _newest_seal(before: SealView | None, row: Row) -> SealView | None:
    """Return the newest seal after ``row``. ``before``: the newest seal before it. `verify` checks seals."""
    if row.tool != CHECKPOINT or not is_of_journal(row):
        return before
    body = row.detail.get("checkpoint")
    try:
        seal = parse_seal(body) if isinstance(body, str) else None
    except InvalidSeal:
        return before
    return before if seal is None else SealView(seal.size, seal.seq, seal.short)
