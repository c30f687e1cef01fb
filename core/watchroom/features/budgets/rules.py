"""The amounts of budgets, their use, and the request to people when a budget is reached. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.errors import ConfigInvalid, InvalidName
from watchroom.features.requests.rows import Option, Request
from watchroom.kernel.rules.details import StepDetail
from watchroom.model import Json, Row
from watchroom.texts import LANGUAGES, Catalogue, catalogue

BudgetScope: TypeAlias = Literal["session", "agent", "task", "team"]
SCOPES: Final[tuple[BudgetScope, ...]] = get_args(BudgetScope)
Measure: TypeAlias = Literal["cost", "tokens", "seconds", "steps"]
"""The measure of a budget: US dollars; tokens sent and received, without cached tokens; seconds of work;
steps."""
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
"""Cost is first: if several budgets are reached, people are asked about the first."""
WARN_AT: Final = 0.8
"""The share of a budget at which people are warned."""
BUDGET: Final = "budget"
"""The field of a request's metadata with the reached budget."""
BudgetChoice: TypeAlias = Literal["raise", "once", "stop"]
"""A person's answer about a reached budget: raise it, allow only the held call, or stop the agent."""
_NAMED: Final[Mapping[str, BudgetScope]] = {"sessions": "session", "agents": "agent", "tasks": "task"}
_MAX_AMOUNT: Final = 1e12
_MAX_NAMED: Final = 500
"""Maximum number of sessions with their own budget; the same for agents and tasks."""
_MAX_NAME: Final = 500
"""Maximum characters of the name of a session, agent or task."""


class Used(NamedTuple):
    """Amounts used.

    - ``cost``: US dollars, without unpriced tokens.
    - ``tokens``: tokens sent and received, without cached tokens.
    - ``seconds``: working time, without waits.
    - ``steps``: the number of steps of sessions.
    - ``unpriced``: tokens without a known price.
    """

    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0
    unpriced: int = 0

    def plus(self, other: Used) -> Used:
        """Return the sum of both."""
        return Used(
            self.cost + other.cost,
            self.tokens + other.tokens,
            self.seconds + other.seconds,
            self.steps + other.steps,
            self.unpriced + other.unpriced,
        )

    def minus(self, other: Used) -> Used:
        """Return the difference of both."""
        return Used(
            self.cost - other.cost,
            self.tokens - other.tokens,
            self.seconds - other.seconds,
            self.steps - other.steps,
            self.unpriced - other.unpriced,
        )

    def of(self, measure: Measure) -> float:
        """Return the amount of ``measure``."""
        return cast("float", getattr(self, measure))


class Budget(NamedTuple):
    """A budget.

    - ``scope``, ``name``: the owner of the budget: an agent, a task, a session (``AGENT/SESSION``), or the
      team, whose name is empty.
    - ``measure``, ``most``: the maximum amount.
    """

    scope: BudgetScope
    name: str
    measure: Measure
    most: float

    @property
    def key(self) -> str:
        """The identity of the budget, without its amount."""
        return budget_key(self._asdict())


def budget_key(fields: Mapping[str, Json]) -> str:
    """Return the `Budget.key` of a budget with these ``fields``. They have the form of a row's detail."""
    return " ".join(str(fields[name]) for name in ("scope", "name", "measure") if fields.get(name))


class BudgetUse(NamedTuple):
    """The amount ``used`` of ``budget``. ``unpriced``: the number of tokens that the cost does not
    include."""

    budget: Budget
    used: float
    unpriced: int = 0

    @property
    def share(self) -> float:
        """The used share of the budget; 1 means all."""
        # Sums of cents are not exact floats: 0.04 of 0.05 must be 0.8.
        return round(self.used / self.budget.most, 9)

    @property
    def is_near(self) -> bool:
        """Whether the use is high enough to warn people."""
        return self.share >= WARN_AT

    @property
    def is_reached(self) -> bool:
        """Whether the budget is used up, so that the next call is held."""
        return self.share >= 1


class Budgets(NamedTuple):
    """The budgets of a workspace.

    - ``each``: the amounts for every session, every agent, every task, and the team.
    - ``named``: the amounts for single sessions, agents or tasks. They replace the amounts in ``each``.
    """

    each: Mapping[BudgetScope, Mapping[Measure, float]] = MappingProxyType({})
    named: Mapping[tuple[BudgetScope, str], Mapping[Measure, float]] = MappingProxyType({})

    def of(self, scope: BudgetScope, name: str) -> list[Budget]:
        """Return the budgets of ``name`` in ``scope``, cost first."""
        own = {**self.each.get(scope, {}), **self.named.get((scope, name), {})}
        return [Budget(scope, name, measure, own[measure]) for measure in MEASURES if measure in own]

    def has(self, scope: BudgetScope) -> bool:
        """Whether anything in ``scope`` can have a budget."""
        return bool(self.each.get(scope)) or any(each == scope for each, _ in self.named)

    def with_budget(self, scope: BudgetScope, name: str, measure: Measure, most: float | None) -> Budgets:
        """Return these budgets with one amount changed.

        - ``scope``, ``name``: the owner of the budget. An empty name changes the amount for each owner in
          ``scope``.
        - ``measure``, ``most``: the new amount; None removes it.

        Raise `ConfigInvalid`.
        """
        if most is not None:
            _check_amount(f"budgets.{scope}.{measure}", most)
        if name:
            _check_name(scope, name)
            named = {key: amounts for key, amounts in self.named.items() if key != (scope, name)}
            changed = _with_amount(self.named.get((scope, name), {}), measure, most)
            if changed:
                named[scope, name] = changed
            return self._replace(named=MappingProxyType(_newest(named)))
        each = {**self.each, scope: _with_amount(self.each.get(scope, {}), measure, most)}
        return self._replace(each=MappingProxyType({scope: each[scope] for scope in each if each[scope]}))


def _with_amount(
    amounts: Mapping[Measure, float], measure: Measure, most: float | None
) -> Mapping[Measure, float]:
    others = {name: amount for name, amount in amounts.items() if name != measure}
    return MappingProxyType(others if most is None else {**others, measure: most})


def _newest(
    named: Mapping[tuple[BudgetScope, str], Mapping[Measure, float]],
) -> dict[tuple[BudgetScope, str], Mapping[Measure, float]]:
    """Return the newest `_MAX_NAMED` owners of each scope. Each session with a raised budget adds an
    owner."""
    kept: dict[tuple[BudgetScope, str], Mapping[Measure, float]] = {}
    counts = dict.fromkeys(SCOPES, 0)
    for key in reversed(list(named)):
        counts[key[0]] += 1
        if counts[key[0]] <= _MAX_NAMED:
            kept[key] = named[key]
    return dict(reversed(kept.items()))


def parse_budgets(table: object) -> Budgets:
    """Parse ``table``, the entry ``budgets`` of the config. Raise `ConfigInvalid` for an invalid entry."""
    if not isinstance(table, dict):
        raise ConfigInvalid(problem="budgets")
    each: dict[BudgetScope, Mapping[Measure, float]] = {}
    named: dict[tuple[BudgetScope, str], Mapping[Measure, float]] = {}
    for key, value in table.items():
        if key in SCOPES:
            each[cast("BudgetScope", key)] = _amounts(f"budgets.{key}", value)
        elif key in _NAMED and isinstance(value, dict) and len(value) <= _MAX_NAMED:
            scope = _NAMED[key]
            for name, amounts in value.items():
                _check_name(scope, name)
                named[scope, name] = _amounts(f"budgets.{key}.{name}", amounts)
        else:
            raise ConfigInvalid(problem=f"budgets.{key}")
    return Budgets(MappingProxyType(each), MappingProxyType(named))


def dump_budgets(budgets: Budgets) -> dict[str, object]:
    """Return ``budgets`` as the entry ``budgets`` of the config: the reverse of `parse_budgets`."""
    table: dict[str, object] = {scope: dict(amounts) for scope, amounts in budgets.each.items()}
    for plural, scope in _NAMED.items():
        own = {name: dict(amounts) for (of, name), amounts in budgets.named.items() if of == scope}
        if own:
            table[plural] = own
    return table


def _amounts(place: str, table: object) -> Mapping[Measure, float]:
    if not isinstance(table, dict):
        raise ConfigInvalid(problem=place)
    for name, amount in table.items():
        if name not in MEASURES:
            raise ConfigInvalid(problem=f"{place}.{name} ({', '.join(MEASURES)})")
        _check_amount(f"{place}.{name}", amount)
    return MappingProxyType(cast("dict[Measure, float]", table))


def _check_amount(place: str, amount: object) -> None:
    # True is an int.
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 < cast("float", amount) <= _MAX_AMOUNT:
        raise ConfigInvalid(problem=f"{place} = {amount!r}")


def _check_name(scope: BudgetScope, name: str) -> None:
    try:
        if scope == "session":
            agent, _, session = name.partition("/")
            validation.check_agent_id(agent)
            for part in session.split("/"):
                validation.check_session_id(part)
        elif scope == "agent":
            validation.check_agent_id(name)
    except InvalidName as error:
        raise ConfigInvalid(problem=error.message()) from error
    if scope == "team" or not name or len(name) > _MAX_NAME or not name.isprintable():
        raise ConfigInvalid(problem=f"budgets.{scope}: {validation.escape_unstorable(name, 100)}")


def used_in(heads: Iterable[Row]) -> Used:
    """Return the amounts used by the sessions with the newest steps ``heads``. A step has the total of its
    session."""
    total = Used()
    for row in heads:
        detail = StepDetail.of(row)
        total = total.plus(Used(detail.cost, detail.tokens, detail.seconds, detail.steps, detail.unpriced))
    return total


def measure_budgets(budgets: Budgets, used: Mapping[tuple[BudgetScope, str], Used]) -> list[BudgetUse]:
    """Return the use of each of ``budgets``. ``used``: the amounts used, by scope and name."""
    return [
        BudgetUse(budget, total.of(budget.measure), total.unpriced)
        for (scope, name), total in used.items()
        for budget in budgets.of(scope, name)
    ]


def check_budgets(budgets: Budgets, used: Mapping[tuple[BudgetScope, str], Used]) -> list[BudgetUse]:
    """Return the ``budgets`` of which at least `WARN_AT` is used. Reached budgets come first, then budgets of
    cost.

    ``used``: the amounts used, by scope and name.
    """
    near = [use for use in measure_budgets(budgets, used) if use.is_near]
    return sorted(near, key=lambda use: (not use.is_reached, MEASURES.index(use.budget.measure)))


def format_amount(texts: Catalogue, measure: Measure, amount: float) -> str:
    """Format ``amount`` of ``measure`` for people, with ``texts``."""
    shown = format_dollars(amount) if measure == "cost" else f"{amount:,.0f}"
    return texts(f"budget.{measure}", amount=shown)


def format_dollars(amount: float) -> str:
    """Format ``amount`` in US dollars as ``1,234.50``. Amounts below ten cents show fractions of a cent."""
    dollars, parts = f"{amount:,.{2 if amount >= 0.1 else 4}f}".split(".")
    cents = parts[:2] + parts[2:].rstrip("0")
    return f"{dollars}.{cents}"


def raised_amount(use: BudgetUse) -> float:
    """Return the larger amount to offer for the reached budget of ``use``: the used amount plus the
    budget."""
    most = use.used + use.budget.most
    return math.ceil(most * 100 - 1e-6) / 100 if use.budget.measure == "cost" else math.ceil(most)


def describe_use(use: BudgetUse, texts: Catalogue) -> str:
    """Return a sentence from ``texts`` with the used amount and the budget."""
    budget = use.budget
    return texts(
        f"budget.{budget.scope}_used",
        name=budget.name,
        used=format_amount(texts, budget.measure, use.used),
        most=format_amount(texts, budget.measure, budget.most),
    )


def budget_request(use: BudgetUse, path: str, texts: Catalogue) -> Request:
    """Return the request to people about the reached budget of ``use``.

    - ``path``: the path of the request.
    - ``texts``: the language.

    The metadata has all values in the texts, so that `find_budget_use` can check them. Therefore the texts
    are part of the format: a changed text invalidates open requests of earlier versions.
    """
    budget, to = use.budget, raised_amount(use)
    prompt = f"{describe_use(use, texts)} {texts('budget.held')}"
    if use.unpriced and budget.measure == "cost":
        prompt += " " + texts("budget.unpriced", tokens=f"{use.unpriced:,}")
    options = (
        Option(texts("budget.raise", most=format_amount(texts, budget.measure, to)), "raise"),
        Option(texts("budget.once"), "once"),
        Option(texts("budget.stop"), "stop"),
    )
    asked = {**budget._asdict(), "used": use.used, "unpriced": use.unpriced, "to": to, "request": path}
    return Request("select", prompt, options=options, metadata={BUDGET: asked})


def find_budget_use(request: Request, path: str) -> BudgetUse | None:
    """Return the reached budget of ``request``, which is at ``path``.

    Return None if the request differs from the result of `budget_request` in every language. The check is
    needed because anyone who can write to the journal can write a request whose prompt does not match its
    options.
    """
    use = _parse_use(budget_asked(request) or {})
    if use is None or not use.is_reached:
        return None
    asked = (budget_request(use, path, catalogue(language)) for language in LANGUAGES)
    return use if any(request == each for each in asked) else None


def _parse_use(asked: Mapping[str, Json]) -> BudgetUse | None:
    """Return the use of a budget in ``asked``, the metadata of a request; None if it is invalid."""
    scope, name, measure, unpriced = (asked.get(each) for each in ("scope", "name", "measure", "unpriced"))
    if scope not in SCOPES or measure not in MEASURES or not isinstance(name, str):
        return None
    most, used = _parse_amount(asked.get("most")), _parse_amount(asked.get("used"))
    if not most or used is None or type(unpriced) is not int or not 0 <= unpriced <= _MAX_AMOUNT:
        return None
    return BudgetUse(Budget(scope, name, measure, most), used, unpriced)


def _parse_amount(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return cast("float", value) if is_number and 0 <= cast("float", value) <= _MAX_AMOUNT * 1_000 else None


def budget_asked(request: Request) -> Mapping[str, Json] | None:
    """Return the budget in the metadata of ``request``; None if there is none."""
    asked = request.metadata.get(BUDGET)
    return asked if isinstance(asked, Mapping) else None
