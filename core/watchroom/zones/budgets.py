"""Budgets of sessions, agents, tasks and the team: what is used of them, and what holds calls over them.

Amounts are part of the config. That one is nearly or wholly used up is said once, by a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

from watchroom.errors import ConfigInvalid, InvalidAnswer, JournalDamaged, RequestNotFound, UnknownAgent
from watchroom.model import BUDGET_REACHED, BUDGET_WARNING, SET_BUDGET, SYSTEM, Json, Note, Row, Zone
from watchroom.registry import CONFIG_HEAD, SETTINGS_HEAD
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
    find_budget_use,
    raised_amount,
    used_in,
)
from watchroom.rules.config import Config, parse_recorded_config
from watchroom.rules.requests import Request
from watchroom.rules.settings import apply_settings_row
from watchroom.rules.usage import SHARED_ID, parent_of
from watchroom.texts import Catalogue, catalogue
from watchroom.zones.people import PeopleReader
from watchroom.zones.requests import ZONE as REQUESTS
from watchroom.zones.requests import RequestZone
from watchroom.zones.settings import SettingsZone
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"
"""That of the rows about budgets; their path is the budget's key."""
_SESSIONS: Final[Zone] = "session"
_TOLERANCE: Final = 1e-6


class _AskedBudget(NamedTuple):
    """A ``request`` of the row ``row`` about a reached budget, as of its ``use``."""

    row: Row
    request: Request
    use: BudgetUse


class _BudgetHistory(NamedTuple):
    """The budgets as of each of the first ``version`` versions of the settings at ``place``.

    ``changes`` has the budgets from a row on, oldest first; ``settings`` are the newest ones.
    """

    place: tuple[Zone, str]
    version: int
    settings: Config | None
    changes: tuple[tuple[int, Budgets], ...]


class BudgetZone:
    """The budgets among the ``settings`` of ``store``.

    ``requests`` ask people about budgets that are used up; ``people`` says which settings count.
    """

    def __init__(
        self, store: Store, requests: RequestZone, settings: SettingsZone, people: PeopleReader
    ) -> None:
        self._store = store
        self._settings = settings
        self._requests = requests
        self._people = people
        self._history = _BudgetHistory(CONFIG_HEAD, 0, None, ())
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
        answered = self._find_answer(use)
        if answered is None:
            return False
        asked, values = answered
        return "raise" in values and use.used < raised_amount(asked.use)

    def _find_answer(self, use: BudgetUse) -> tuple[_AskedBudget, tuple[str, ...]] | None:
        """Return the newest request about the budget of ``use`` that a person answered, and the answer.

        An answer counts for the amount that was asked about, and until somebody changes that amount. None if
        no answer counts.
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
        """Return the row of the settings since which ``budget`` has its amount. Raise `JournalError`."""
        since = self._store.journal.last_seq()
        for seq, budgets in reversed(self._read_history().changes):
            if budget not in budgets.of(budget.scope, budget.name):
                break
            since = seq
        return since

    def _read_history(self) -> _BudgetHistory:
        """Return the budgets as of each version of the settings that hold. Raise `JournalError`."""
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
            # Settings that do not count, or cannot be read, change no budget.
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
        """Return the settings after ``row``, where ``settings`` held before. Raise `ConfigInvalid`,
        `JournalError`."""
        content = self._store.journal.content(row.seq)
        if row.zone == CONFIG_HEAD[0]:
            return parse_recorded_config(row, content)
        return apply_settings_row(settings, row, content) if self._people.counts(row) else settings

    def _used(
        self, config: Config, agent: str, session: str, steps_from: int
    ) -> dict[tuple[BudgetScope, str], Used]:
        """Return what was used in each scope that has a budget and holds for ``agent`` and ``session``."""
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
        """Return what ``name`` in ``scope`` has used; the steps of a session count from ``steps_from``."""
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
        """Return the newest open request about the budget with this ``key``, None where none is open."""
        for asked in self._find_asked(key):
            if self._requests.find_end(asked.row.path) is None:
                return asked.request
        return None

    def _find_asked(self, key: str) -> Iterator[_AskedBudget]:
        """Yield the requests about the budget with this ``key``, newest first.

        Notes say where to look. A note that names anything but a request that Watchroom would make is
        skipped, so that nobody can hide a request by planting one.
        """
        notes = self._store.journal.notes(ZONE, key, SYSTEM, BUDGET_REACHED)
        numbers = {number for note in notes if type(number := note.detail.get("request")) is int}
        for number in sorted(numbers, reverse=True):
            row = self._store.journal.row(number)
            asked = self._read_asked(row) if row is not None else None
            if asked is not None and asked.use.budget.key == key:
                yield asked

    def _read_asked(self, row: Row) -> _AskedBudget | None:
        """Return the request about a budget that ``row`` asks, None if Watchroom would not ask it."""
        try:
            request = self._requests.find(row.seq)
        except (RequestNotFound, JournalDamaged):
            return None
        use = find_budget_use(request, row.path)
        return None if use is None else _AskedBudget(row, request, use)

    def find_stop(self, agent: str, session: str = "") -> str | None:
        """How much is used, in a sentence, of a budget that holds ``agent`` and its ``session`` (a path, or
        empty) and about which a person said that this is the end; None where there is none. Raises
        `JournalError`."""
        for use in self.check(agent, session):
            answered = self._find_answer(use) if use.is_reached else None
            if answered is not None and "stop" in answered[1]:
                return describe_use(use, catalogue(self._store.registry.current().language))
        return None

    def check_raise(self, request: Request) -> BudgetUse:
        """Return the budget that ``request`` offers to raise. Raise `InvalidAnswer` if Watchroom did not ask
        that request, or less is used than it says."""
        path = str((budget_asked(request) or {}).get("request"))
        row = self._store.journal.version(REQUESTS, path, 1)
        asked = self._read_asked(row) if row is not None else None
        if asked is None or asked.request != request:
            raise InvalidAnswer(rule="answer_budget")
        budget = asked.use.budget
        used = self._used_by(self._store.registry.current(), budget.scope, budget.name)
        if not _is_true(asked.use, used.of(budget.measure)):
            raise InvalidAnswer(rule="answer_budget")
        return asked.use

    def raise_budget(self, actor: str, request: Request) -> None:
        """Raise, for ``actor``, the budget that ``request`` asked about to what it offered.

        Do nothing if the budget has another amount by now. Raise `ConfigInvalid`, `JournalError`, and what
        `check_raise` raises.
        """
        use = self.check_raise(request)
        budget = use.budget
        if budget in self._store.registry.current().budgets.of(budget.scope, budget.name):
            self._write(actor, budget.scope, budget.name, budget.measure, raised_amount(use))

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


def _is_true(asked: BudgetUse, used: float) -> bool:
    """Whether as much is ``used`` as a request says with ``asked``. Sums of cents are not exact."""
    return asked.used <= used + _TOLERANCE
