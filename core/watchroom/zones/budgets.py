"""Budgets of sessions, agents, tasks and the team: what is used of them, and what holds calls over them.

Amounts are part of the config. That one is nearly or wholly used up is said once, by a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Final, cast

from watchroom.errors import RequestNotFound, UnknownAgent
from watchroom.model import BUDGET_REACHED, BUDGET_WARNING, SET_BUDGET, SYSTEM, Json, Note, Row, Zone
from watchroom.rules.budgets import (
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
    is_about_budget,
    used_in,
)
from watchroom.rules.config import Config
from watchroom.rules.requests import Request
from watchroom.rules.usage import SHARED_ID, parent_of
from watchroom.texts import Catalogue, catalogue
from watchroom.zones.requests import RequestZone
from watchroom.zones.settings import SettingsZone
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"
"""That of the rows about budgets; their path is the budget's key."""
_SESSIONS: Final[Zone] = "session"


class BudgetZone:
    """The budgets among the ``settings`` of ``store``; ``requests`` ask people about those that are used
    up."""

    def __init__(self, store: Store, requests: RequestZone, settings: SettingsZone) -> None:
        self._store = store
        self._settings = settings
        self._requests = requests
        self._warned: set[str] = set()
        self._lock = Lock()

    def check(self, agent: str, session: str = "", steps_from: int = 0) -> list[BudgetUse]:
        """How much is used of those budgets that hold for ``agent`` and its ``session`` (a path, empty for
        none; its subagents count with it) and that are nearly or wholly used up, the reached ones first. The
        session's steps count from ``steps_from``. Raises `JournalError`."""
        config = self._store.registry.current()
        if config.budgets == Budgets():
            return []
        uses = check_budgets(config.budgets, self._used(config, agent, session, steps_from))
        return [use for use in uses if not use.is_reached or not self._is_raised(use)]

    def _is_raised(self, use: BudgetUse) -> bool:
        """Whether a person answered that this budget is to be more than is used: that holds at once, before
        the settings say it."""
        answered = self._find_answer(use.budget)
        if answered is None:
            return False
        values, asked = answered
        return "raise" in values and use.used < cast("float", asked["to"])

    def _find_answer(self, budget: Budget) -> tuple[tuple[str, ...], Mapping[str, Json]] | None:
        """What people answered when they were last asked about ``budget`` as it is, and what they were asked;
        None where they were not, or did not answer so that it counts."""
        row = self._find_asked(budget.key)
        ended = self._requests.ended(row.path) if row is not None else None
        if row is None or ended is None or ended.answer is None:
            return None
        asked = budget_asked(self._requests.read(row)) or {}
        return (ended.answer.values, asked) if asked.get("most") == budget.most else None

    def _used(
        self, config: Config, agent: str, session: str, steps_from: int
    ) -> dict[tuple[BudgetScope, str], Used]:
        """What was used in each scope that has a budget."""
        journal, budgets = self._store.journal, config.budgets
        used: dict[tuple[BudgetScope, str], Used] = {}
        if session and budgets.of("session", session):
            heads = journal.heads(_SESSIONS, session[: len(agent) + 1 + SHARED_ID])
            own = used_in(row for row in heads if session in (row.path, parent_of(row)))
            used["session", session] = own._replace(steps=own.steps - steps_from)
        if budgets.of("agent", agent):
            used["agent", agent] = used_in(journal.heads(_SESSIONS, f"{agent}/"))
        task = config.agents[agent].task if agent in config.agents else ""
        if task and budgets.of("task", task):
            members = [each.id for each in config.agents.values() if each.task == task]
            used["task", task] = used_in(
                row for member in members for row in journal.heads(_SESSIONS, f"{member}/")
            )
        if budgets.of("team", ""):
            used["team", ""] = used_in(journal.heads(_SESSIONS))
        return used

    def hold_call(self, agent: str, session: str = "", steps_from: int = 0) -> Request | None:
        """What people have to decide before ``agent`` makes its next call, in its ``session`` (a path, empty
        for none) whose steps count from ``steps_from``; None where it may be made. Who is near the end of a
        budget is warned of, once; of one that is used up people are asked, once for all whom it holds: its
        request says where. Raises `JournalError`."""
        uses = self.check(agent, session, steps_from)
        if not uses:
            return None
        texts = catalogue(self._store.registry.current().language)
        for use in uses:
            self._warn(use, texts)
        return self._ask(uses[0], agent, session, texts) if uses[0].is_reached else None

    def _warn(self, use: BudgetUse, texts: Catalogue) -> None:
        """Say that most of a budget is used, for each amount of it once."""
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
            path = f"{session or f'{agent}/calls'}/budget-{journal.last_seq() + 1}"
            request = budget_request(use, path, texts)
            row = self._requests.ask(agent, path, request)
            note = Note(SYSTEM, BUDGET_REACHED, ZONE, key, message=row.message, detail={"request": row.seq})
            self._store.commits.commit(note)
            return request

    def find_open_request(self, key: str) -> Request | None:
        """The request that asks people about the budget with this ``key``, None where none is open."""
        asked = self._find_asked(key)
        if asked is None or self._requests.find_end(asked.path) is not None:
            return None
        return self._requests.read(asked)

    def _find_asked(self, key: str) -> Row | None:
        """Return the row of the newest request about the budget with this ``key``, None where no request that
        Watchroom would make is named."""
        reached = self._store.journal.last_note(ZONE, key, SYSTEM, BUDGET_REACHED)
        number = reached.detail.get("request") if reached is not None else None
        try:
            request = self._requests.find(number) if type(number) is int else None
        except (RequestNotFound, ValueError, TypeError, KeyError):
            return None
        row = self._store.journal.row(number) if type(number) is int else None
        texts = catalogue(self._store.registry.current().language)
        is_about = request is not None and row is not None and is_about_budget(request, key, row.path, texts)
        return row if is_about else None

    def find_stop(self, agent: str, session: str = "") -> str | None:
        """How much is used, in a sentence, of a budget that holds ``agent`` and its ``session`` (a path, or
        empty) and about which a person said that this is the end; None where there is none. Raises
        `JournalError`."""
        for use in self.check(agent, session):
            answered = self._find_answer(use.budget) if use.is_reached else None
            if answered is not None and "stop" in answered[0]:
                return describe_use(use, catalogue(self._store.registry.current().language))
        return None

    def raise_budget(self, actor: str, request: Request) -> None:
        """Raise, for ``actor``, the budget that ``request`` asked about to what it offered, unless it is at
        least that by now. Raises `ConfigInvalid`, `JournalError`."""
        asked = budget_asked(request) or {}
        scope, measure = cast("BudgetScope", asked["scope"]), cast("Measure", asked["measure"])
        name, to = str(asked["name"]), cast("float", asked["to"])
        known = self._store.registry.current().budgets.of(scope, name)
        if any(each.measure == measure and each.most < to for each in known):
            self._write(actor, scope, name, measure, to)

    def set_budget(
        self, actor: str, scope: BudgetScope, name: str, measure: Measure, most: float | None
    ) -> Row | None:
        """Set, for ``actor``, how much (``most``) of ``measure`` the agent, task or session ``name`` may use,
        or each of ``scope`` where that is empty; None takes the budget away. Calls that it holds are checked
        again. Returns the row; None where nothing changed. Raises `ConfigInvalid`, `UnknownAgent`,
        `JournalError`."""
        config = self._store.registry.current()
        owner = name.partition("/")[0]
        if scope in ("agent", "session") and name and owner not in config.agents:
            raise UnknownAgent(agent=owner, known=", ".join(config.agents) or "-")
        row = self._write(actor, scope, name, measure, most)
        if row is None:
            return None
        for each in [name] if name else self._names(scope):
            asked = self.find_open_request(Budget(scope, each, measure, 0).key)
            if asked is not None:
                self._requests.withdraw(str((budget_asked(asked) or {})["request"]))
        return row

    def _names(self, scope: BudgetScope) -> list[str]:
        """Who there is in ``scope``."""
        journal, config = self._store.journal, self._store.registry.current()
        if scope == "session":
            return [row.path for row in journal.heads(_SESSIONS)]
        if scope == "agent":
            return list(config.agents)
        return [""] if scope == "team" else list({each.task for each in config.agents.values() if each.task})

    def _write(
        self, actor: str, scope: BudgetScope, name: str, measure: Measure, most: float | None
    ) -> Row | None:
        detail: dict[str, Json] = {"scope": scope, "name": name, "measure": measure, "most": most}

        def change(config: Config) -> Config:
            return config._replace(budgets=config.budgets.with_budget(scope, name, measure, most))

        return self._settings.change(actor, SET_BUDGET, change, detail)
