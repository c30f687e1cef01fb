"""Holds calls when a budget is reached, asks people, and changes budgets.

The amounts are settings in the config. One row is written when a budget is nearly used up, and one when it is
reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

from watchroom.errors import (
    BudgetReached,
    ConfigInvalid,
    InvalidAnswer,
    JournalDamaged,
    RequestNotFound,
    UnknownAgent,
)
from watchroom.features.budgets.rows import SHARED_ID, parent_of
from watchroom.features.budgets.rules import (
    Budget,
    Budgets,
    BudgetScope,
    BudgetUse,
    Measure,
    Used,
    budget_asked,
    budget_request,
    check_budgets,
    describe_use,
    find_budget_use,
    raised_amount,
    used_in,
)
from watchroom.features.config.registry import CONFIG_HEAD, SETTINGS_HEAD
from watchroom.features.config.rows import Config, apply_settings_row, parse_recorded_config
from watchroom.features.config.store import Store
from watchroom.features.people.service import PeopleReader, SignedSettings
from watchroom.features.requests.rows import ZONE as REQUESTS
from watchroom.features.requests.rows import Request
from watchroom.features.requests.service import Requests
from watchroom.kernel.call_context import CallContext
from watchroom.model import BUDGET_REACHED, BUDGET_WARNING, SET_BUDGET, SYSTEM, Json, Note, Row, Zone
from watchroom.texts import Catalogue, catalogue

ZONE: Final[Zone] = "workspace"
"""The zone of rows about budgets. Their path is the key of the budget."""
_SESSIONS: Final[Zone] = "session"
_TOLERANCE: Final = 1e-6
"""Tolerance for comparisons, because sums of cents are not exact floats."""


class _AskedBudget(NamedTuple):
    """A request about a reached budget: its row, and the budget with the used amount."""

    row: Row
    request: Request
    use: BudgetUse


class _BudgetHistory(NamedTuple):
    """The history of the budgets.

    - ``place``: the zone and path of the settings in force.
    - ``version``: the last version that was read.
    - ``settings``: the settings as of this version.
    - ``changes``: the budgets after each row that changed them, oldest first.
    """

    place: tuple[Zone, str]
    version: int
    settings: Config | None
    changes: tuple[tuple[int, Budgets], ...]


class BudgetControl:
    """Measures and enforces the budgets of a workspace. Thread-safe.

    - ``store``: the journal and the settings in force.
    - ``requests``: asks people about reached budgets.
    - ``settings``: changes budgets.
    - ``people``: decides which rows of settings count.
    """

    def __init__(
        self, store: Store, requests: Requests, settings: SignedSettings, people: PeopleReader
    ) -> None:
        self._store = store
        self._settings = settings
        self._requests = requests
        self._people = people
        self._history = _BudgetHistory(CONFIG_HEAD, 0, None, ())
        self._warned: set[str] = set()
        self._lock = Lock()

    def check(self, agent: str, session: str = "", steps_from: int = 0) -> list[BudgetUse]:
        """Return the budgets of an agent that are nearly or fully used up, reached budgets first.

        - ``agent``: the agent. The budgets of its task and of the team are included.
        - ``session``: the path of its session, default none. The session's subagents are included.
        - ``steps_from``: the session's number of steps when counting began, default 0.

        Raise `JournalError`.
        """
        config = self._store.registry.current()
        if config.budgets == Budgets():
            return []
        uses = check_budgets(config.budgets, self._used(config, agent, session, steps_from))
        return [use for use in uses if not use.is_reached or not self._is_raised(use)]

    def _is_raised(self, use: BudgetUse) -> bool:
        """Whether a person's answer raises this budget above the used amount. The answer takes effect
        immediately, before the settings are written."""
        answered = self._find_answer(use)
        if answered is None:
            return False
        asked, values = answered
        return "raise" in values and use.used < raised_amount(asked.use)

    def _find_answer(self, use: BudgetUse) -> tuple[_AskedBudget, tuple[str, ...]] | None:
        """Return the newest answered request about the budget of ``use``, and the answer; None if there is
        none.

        An answer counts only for the amount in its request, and until somebody changes that amount.
        """
        journal, newest = self._store.journal, self._find_last_change(use.budget)
        found: tuple[_AskedBudget, tuple[str, ...]] | None = None
        for asked in self._find_asked(use.budget.key):
            head = journal.head(REQUESTS, asked.row.path)
            if asked.use.budget != use.budget or not _is_true(asked.use, use.used):
                continue
            if head is None or head.seq < newest:
                continue
            outcome = self._requests.ended(asked.row.path)
            if outcome is not None and outcome.answer is not None and outcome.row.seq > newest:
                found, newest = (asked, outcome.answer.values), outcome.row.seq
        return found

    def _find_last_change(self, budget: Budget) -> int:
        """Return the number of the row that set the amount of ``budget``. Raise `JournalError`."""
        since = self._store.journal.last_seq()
        for seq, budgets in reversed(self._read_history().changes):
            if budget not in budgets.of(budget.scope, budget.name):
                break
            since = seq
        return since

    def _read_history(self) -> _BudgetHistory:
        """Return the budgets as of each version of the settings in force. Raise `JournalError`."""
        _, signed = self._store.registry.settings()
        place = CONFIG_HEAD if signed is None else SETTINGS_HEAD
        with self._lock:
            known = self._history
        if known.place != place:
            known = _BudgetHistory(place, 0, None, ())
        changes = list(known.changes)
        version, settings = known.version, known.settings
        for row in self._store.journal.history(*place, after_version=version):
            version = row.version or 0
            # Invalid and damaged settings change no budget.
            with suppress(ConfigInvalid, JournalDamaged):
                settings = self._apply_row(settings, row)
            budgets = settings.budgets if settings is not None else Budgets()
            if not changes or changes[-1][1] != budgets:
                changes.append((row.seq, budgets))
        history = _BudgetHistory(place, version, settings, tuple(changes))
        with self._lock:
            self._history = history
        return history

    def _apply_row(self, settings: Config | None, row: Row) -> Config | None:
        """Return the settings after ``row``. ``settings``: the settings before it. Raise `ConfigInvalid`,
        `JournalError`."""
        content = self._store.journal.content(row.seq)
        if row.zone == CONFIG_HEAD[0]:
            return parse_recorded_config(row, content)
        return apply_settings_row(settings, row, content) if self._people.counts(row) else settings

    def _used(
        self, config: Config, agent: str, session: str, steps_from: int
    ) -> dict[tuple[BudgetScope, str], Used]:
        """Return the amounts used in each scope of ``agent`` and ``session`` that has a budget."""
        task = config.agents[agent].task if agent in config.agents else ""
        holding: Sequence[tuple[BudgetScope, str]] = (
            ("session", session),
            ("agent", agent),
            ("task", task),
            ("team", ""),
        )
        return {
            (scope, name): self._used_by(config, scope, name, steps_from)
            for scope, name in holding
            if (name or scope == "team") and config.budgets.of(scope, name)
        }

    def _used_by(self, config: Config, scope: BudgetScope, name: str, steps_from: int = 0) -> Used:
        """Return the amounts used by ``name`` in ``scope``. ``steps_from``: subtracted from a session's
        steps."""
        journal = self._store.journal
        if scope == "session":
            agent, _, _ = name.partition("/")
            heads = journal.heads(_SESSIONS, name[: len(agent) + 1 + SHARED_ID])
            own = used_in(row for row in heads if name in (row.path, parent_of(row)))
            return own._replace(steps=own.steps - steps_from)
        if scope == "agent":
            return used_in(journal.heads(_SESSIONS, f"{name}/"))
        if scope == "task":
            members = [each.id for each in config.agents.values() if each.task == name]
            return used_in(row for member in members for row in journal.heads(_SESSIONS, f"{member}/"))
        return used_in(journal.heads(_SESSIONS))

    def hold_call(self, agent: str, session: str = "", steps_from: int = 0) -> Request | None:
        """Return the request that people must answer before the next call of ``agent``; None if the call may
        run.

        Warn people once if a budget is nearly used up. If a budget is reached, open one request for all
        agents that it holds. See `check` for the parameters. Raise `JournalError`.
        """
        texts = catalogue(self._store.registry.current().language)
        while uses := self.check(agent, session, steps_from):
            for use in uses:
                self._warn(use, texts)
            if not uses[0].is_reached:
                return None
            asked = self._ask(uses[0], agent, session, texts)
            if self._is_in_force(asked):
                return asked
            # Whoever changed the budget may have looked for the request before it was there.
            self._requests.withdraw(_path_of(asked))
        return None

    def _is_in_force(self, asked: Request) -> bool:
        """Whether the budget that ``asked`` is about still has its amount."""
        use = find_budget_use(asked, _path_of(asked))
        if use is None:
            return True
        return use.budget in self._store.registry.current().budgets.of(use.budget.scope, use.budget.name)

    def _warn(self, use: BudgetUse, texts: Catalogue) -> None:
        """Record that a budget is nearly used up, once for each amount."""
        key = f"{use.budget.key} {use.budget.most:g}"
        with self._lock:
            if key in self._warned:
                return
        detail: dict[str, Json] = {**use.budget._asdict(), "used": round(use.used, 6)}
        note = Note(
            *(SYSTEM, BUDGET_WARNING, ZONE, use.budget.key),
            message=describe_use(use, texts),
            detail=detail,
            key=f"{BUDGET_WARNING} {key}",
        )
        self._store.commits.commit(note)
        with self._lock:
            self._warned.add(key)

    def _ask(self, use: BudgetUse, agent: str, session: str, texts: Catalogue) -> Request:
        journal, key = self._store.journal, use.budget.key
        with journal.exclusive(f"budget {key}"):
            asked = self.find_open_request(key)
            if asked is not None:
                return asked
            above = f"{session or f'{agent}/calls'}/budget-"
            row = self._find_unrecorded(above, use)
            if row is None:
                path = f"{above}{journal.last_seq() + 1}"
                request = budget_request(use, path, texts)
                row = self._requests.ask(CallContext(agent), path, request, is_bounded=False)
            request = self._requests.read(row)
            note = Note(SYSTEM, BUDGET_REACHED, ZONE, key, message=row.message, detail={"request": row.seq})
            self._store.commits.commit(note)
            return request

    def _find_unrecorded(self, above: str, use: BudgetUse) -> Row | None:
        """Return the open request about the reached budget of ``use`` whose note the journal refused, None if
        there is none. ``above``: the beginning of its path."""
        for head in self._store.journal.heads(REQUESTS, above):
            asked = self._read_asked(head) if head.version == 1 else None
            is_same = asked is not None and asked.use.budget == use.budget and _is_true(asked.use, use.used)
            if is_same and self._requests.find_end(head.path) is None:
                return head
        return None

    def find_open_request(self, key: str) -> Request | None:
        """Return the newest open request about the budget with this ``key``, None if there is none."""
        asked = self._find_open(key)
        return None if asked is None else asked.request

    def _find_open(self, key: str) -> _AskedBudget | None:
        open_now = (each for each in self._find_asked(key) if self._requests.find_end(each.row.path) is None)
        return next(open_now, None)

    def _find_asked(self, key: str) -> Iterator[_AskedBudget]:
        """Yield the requests about the budget with this ``key``, newest first.

        Notes name the requests. A note that does not name a request of Watchroom is skipped, so that a forged
        note cannot hide a request.
        """
        notes = self._store.journal.notes(ZONE, key, SYSTEM, BUDGET_REACHED)
        numbers = {number for note in notes if type(number := note.detail.get("request")) is int}
        for number in sorted(numbers, reverse=True):
            row = self._store.journal.row(number)
            asked = self._read_asked(row) if row is not None else None
            if asked is not None and asked.use.budget.key == key:
                yield asked

    def _read_asked(self, row: Row) -> _AskedBudget | None:
        """Return the request about a budget in ``row``, None if it is not a request of Watchroom."""
        try:
            request = self._requests.find(row.seq)
        except (RequestNotFound, JournalDamaged):
            return None
        use = find_budget_use(request, row.path)
        return None if use is None else _AskedBudget(row, request, use)

    def check_stop(self, agent: str, session: str = "") -> None:
        """Raise `BudgetReached` if a budget is reached and a person answered to stop the agent.

        See `check` for the parameters. Raise `JournalError`.
        """
        stopped = self.find_stop(agent, session)
        if stopped is not None:
            raise BudgetReached(used=stopped)

    def find_stop(self, agent: str, session: str = "") -> str | None:
        """Return a sentence about the reached budget if a person answered to stop the agent; else None.

        See `check` for the parameters. Raise `JournalError`.
        """
        for use in self.check(agent, session):
            answered = self._find_answer(use) if use.is_reached else None
            if answered is not None and "stop" in answered[1]:
                return describe_use(use, catalogue(self._store.registry.current().language))
        return None

    def check_raise(self, request: Request) -> BudgetUse:
        """Return the budget that ``request`` offers to raise. Raise `InvalidAnswer` if Watchroom did not make
        the request, or if it claims more than the used amount."""
        path = _path_of(request)
        row = self._store.journal.version(REQUESTS, path, 1)
        asked = self._read_asked(row) if row is not None else None
        if asked is None or asked.request != request:
            raise InvalidAnswer(rule="answer_budget")
        budget = asked.use.budget
        used = self._used_by(self._store.registry.current(), budget.scope, budget.name)
        if not _is_true(asked.use, used.of(budget.measure)):
            raise InvalidAnswer(rule="answer_budget")
        return asked.use

    def raise_budget(self, call: CallContext, request: Request) -> None:
        """Raise the budget of ``request`` to the amount that it offers.

        Do nothing if the amount was changed since. Raise `ConfigInvalid`, `JournalError`, and the errors of
        `check_raise`.
        """
        use = self.check_raise(request)
        budget = use.budget
        if budget in self._store.registry.current().budgets.of(budget.scope, budget.name):
            self._write(call, budget.scope, budget.name, budget.measure, raised_amount(use))

    def set_budget(
        self, call: CallContext, scope: BudgetScope, name: str, measure: Measure, most: float | None
    ) -> Row | None:
        """Set a budget. Withdraw the requests of calls that it holds, so that the calls are checked again.

        - ``scope``, ``name``: the owner of the budget. An empty name sets it for each owner in ``scope``.
        - ``measure``, ``most``: the amount; None removes the budget.

        Return the row; None if nothing changed. Raise `ConfigInvalid`, `UnknownAgent`, `JournalError`.
        """
        config = self._store.registry.current()
        owner = name.partition("/")[0]
        if scope in ("agent", "session") and name and owner not in config.agents:
            raise UnknownAgent(agent=owner, known=", ".join(config.agents) or "-")
        row = self._write(call, scope, name, measure, most)
        budgets = self._store.registry.current().budgets
        # Even if nothing changed: an earlier call may have failed after its change.
        for each in [name] if name else self._names(scope):
            asked = self._find_open(Budget(scope, each, measure, 0).key)
            if asked is not None and asked.use.budget not in budgets.of(scope, each):
                self._requests.withdraw(asked.row.path)
        return row

    def _names(self, scope: BudgetScope) -> list[str]:
        """Return the sessions, agents or tasks in ``scope``."""
        journal, config = self._store.journal, self._store.registry.current()
        if scope == "session":
            return [row.path for row in journal.heads(_SESSIONS)]
        if scope == "agent":
            return list(config.agents)
        return [""] if scope == "team" else list({each.task for each in config.agents.values() if each.task})

    def _write(
        self, call: CallContext, scope: BudgetScope, name: str, measure: Measure, most: float | None
    ) -> Row | None:
        detail: dict[str, Json] = {"scope": scope, "name": name, "measure": measure, "most": most}

        def change(config: Config) -> Config:
            return config._replace(budgets=config.budgets.with_budget(scope, name, measure, most))

        return self._settings.change(call.with_tool(SET_BUDGET), change, detail)


def _path_of(asked: Request) -> str:
    """Return the path of ``asked``, a request about a budget."""
    return str((budget_asked(asked) or {}).get("request"))


def _is_true(asked: BudgetUse, used: float) -> bool:
    """Whether ``used`` is at least the used amount that ``asked``, the data of a request, claims."""
    return asked.used <= used + _TOLERANCE
