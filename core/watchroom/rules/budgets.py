"""Budgets: how much sessions, agents, tasks and the team may use, and what is used of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.errors import ConfigInvalid, InvalidName
from watchroom.model import Json, Row
from watchroom.rules.details import StepDetail
from watchroom.rules.requests import Option, Request
from watchroom.texts import LANGUAGES, Catalogue, catalogue

BudgetScope: TypeAlias = Literal["session", "agent", "task", "team"]
SCOPES: Final[tuple[BudgetScope, ...]] = get_args(BudgetScope)
Measure: TypeAlias = Literal["cost", "tokens", "seconds", "steps"]
"""US dollars; tokens that no cache had, sent and received; seconds of work; steps."""
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
"""Money first: of several budgets that are reached, people are asked about the first."""
WARN_AT: Final = 0.8
"""People are warned when this share of a budget is used."""
BUDGET: Final = "budget"
"""In the metadata of a request: the budget that was reached."""
BudgetChoice: TypeAlias = Literal["raise", "once", "stop"]
"""What a person decides on a reached budget: a larger budget, the held call alone, or the end."""
_NAMED: Final[Mapping[str, BudgetScope]] = {"sessions": "session", "agents": "agent", "tasks": "task"}
_MOST: Final = 1e12
_MOST_NAMED: Final = 500
"""Of so many sessions, agents and tasks each there may be a budget of their own."""


class Used(NamedTuple):
    """What was used: ``cost`` in US dollars for all tokens but the ``unpriced`` ones, ``tokens`` that no
    cache had, ``seconds`` of work without waiting, ``steps``."""

    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0
    unpriced: int = 0

    def plus(self, other: Used) -> Used:
        """Both together."""
        return Used(
            self.cost + other.cost,
            self.tokens + other.tokens,
            self.seconds + other.seconds,
            self.steps + other.steps,
            self.unpriced + other.unpriced,
        )

    def of(self, measure: Measure) -> float:
        """How much of ``measure``."""
        return cast("float", getattr(self, measure))


class Budget(NamedTuple):
    """So much (``most``) of ``measure`` may be used by ``name``: an agent, a task, a session
    (``AGENT/SESSION``), or the team, whose name is empty."""

    scope: BudgetScope
    name: str
    measure: Measure
    most: float

    @property
    def key(self) -> str:
        """What tells it from all others, whatever its amount."""
        return budget_key(self._asdict())


def budget_key(fields: Mapping[str, Json]) -> str:
    """`Budget.key` of the budget with these ``fields``, as the detail of a row has them."""
    return " ".join(str(fields[name]) for name in ("scope", "name", "measure") if fields.get(name))


class BudgetUse(NamedTuple):
    """How much of ``budget`` is ``used``; ``unpriced`` tokens are in no cost."""

    budget: Budget
    used: float
    unpriced: int = 0

    @property
    def share(self) -> float:
        # Sums of cents are not exact: 0.04 of 0.05 is four fifths.
        return round(self.used / self.budget.most, 9)

    @property
    def is_near(self) -> bool:
        """Whether so much is used that people are warned."""
        return self.share >= WARN_AT

    @property
    def is_reached(self) -> bool:
        """Whether all of it is used: the next call is held."""
        return self.share >= 1


class Budgets(NamedTuple):
    """The budgets of a workspace: ``each`` holds for every session, agent or task, or for the team; ``named``
    for the one of that name, in place of it."""

    each: Mapping[BudgetScope, Mapping[Measure, float]] = MappingProxyType({})
    named: Mapping[tuple[BudgetScope, str], Mapping[Measure, float]] = MappingProxyType({})

    def of(self, scope: BudgetScope, name: str) -> list[Budget]:
        """The budgets of ``name`` in ``scope``, money first."""
        own = {**self.each.get(scope, {}), **self.named.get((scope, name), {})}
        return [Budget(scope, name, measure, own[measure]) for measure in MEASURES if measure in own]

    def has(self, scope: BudgetScope) -> bool:
        """Whether anything in ``scope`` may have a budget."""
        return bool(self.each.get(scope)) or any(each == scope for each, _ in self.named)

    def with_budget(self, scope: BudgetScope, name: str, measure: Measure, most: float | None) -> Budgets:
        """These budgets with another amount, ``most`` of ``measure``, for ``name`` in ``scope``: for each of
        them where ``name`` is empty. None takes it away. Raises `ConfigInvalid`."""
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
    """Without the oldest of a scope that has too many: each session that was allowed more has one."""
    kept: dict[tuple[BudgetScope, str], Mapping[Measure, float]] = {}
    counts = dict.fromkeys(SCOPES, 0)
    for key in reversed(list(named)):
        counts[key[0]] += 1
        if counts[key[0]] <= _MOST_NAMED:
            kept[key] = named[key]
    return dict(reversed(kept.items()))


def parse_budgets(table: object) -> Budgets:
    """The budgets that ``table``, the part ``[budgets]`` of a config, says. Raises `ConfigInvalid`, which
    names the entry that is wrong."""
    if not isinstance(table, dict):
        raise ConfigInvalid(problem="budgets")
    each: dict[BudgetScope, Mapping[Measure, float]] = {}
    named: dict[tuple[BudgetScope, str], Mapping[Measure, float]] = {}
    for key, value in table.items():
        if key in SCOPES:
            each[cast("BudgetScope", key)] = _amounts(f"budgets.{key}", value)
        elif key in _NAMED and isinstance(value, dict) and len(value) <= _MOST_NAMED:
            scope = _NAMED[key]
            for name, amounts in value.items():
                _check_name(scope, name)
                named[scope, name] = _amounts(f"budgets.{key}.{name}", amounts)
        else:
            raise ConfigInvalid(problem=f"budgets.{key}")
    return Budgets(MappingProxyType(each), MappingProxyType(named))


def dump_budgets(budgets: Budgets) -> dict[str, object]:
    """``budgets`` as the part ``[budgets]`` of a config says them: the reverse of `parse_budgets`."""
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
    # True is an int, too.
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 < cast("float", amount) <= _MOST:
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
    if scope == "team" or not name or len(name) > 500 or not name.isprintable():
        raise ConfigInvalid(problem=f"budgets.{scope}: {validation.escape_unstorable(name, 100)}")


def used_in(heads: Iterable[Row]) -> Used:
    """What the sessions have used whose newest steps are ``heads``."""
    total = Used()
    for row in heads:
        detail = StepDetail.of(row)
        total = total.plus(Used(detail.cost, detail.tokens, detail.seconds, detail.steps, detail.unpriced))
    return total


def measure_budgets(budgets: Budgets, used: Mapping[tuple[BudgetScope, str], Used]) -> list[BudgetUse]:
    """How much is used of each of ``budgets``. ``used`` says by scope and name what was used."""
    return [
        BudgetUse(budget, total.of(budget.measure), total.unpriced)
        for (scope, name), total in used.items()
        for budget in budgets.of(scope, name)
    ]


def check_budgets(budgets: Budgets, used: Mapping[tuple[BudgetScope, str], Used]) -> list[BudgetUse]:
    """How much is used of those ``budgets`` of which at least `WARN_AT` is, the reached ones first and money
    before the rest. ``used`` says by scope and name what was used."""
    near = [use for use in measure_budgets(budgets, used) if use.is_near]
    return sorted(near, key=lambda use: (not use.is_reached, MEASURES.index(use.budget.measure)))


def format_amount(texts: Catalogue, measure: Measure, amount: float) -> str:
    """``amount`` of ``measure`` as people read it, from ``texts``: of money, parts of a cent where it is
    less than ten."""
    if measure != "cost":
        return texts(f"budget.{measure}", amount=f"{amount:,.0f}")
    dollars, parts = f"{amount:,.{2 if amount >= 0.1 else 4}f}".split(".")
    cents = parts[:2] + parts[2:].rstrip("0")
    return texts("budget.cost", amount=f"{dollars}.{cents}")


def raised_amount(use: BudgetUse) -> float:
    """The budget in place of that of ``use``, which was reached: as much again from here."""
    most = use.used + use.budget.most
    return math.ceil(most * 100 - 1e-6) / 100 if use.budget.measure == "cost" else math.ceil(most)


def describe_use(use: BudgetUse, texts: Catalogue) -> str:
    """How much of its budget is used, in a sentence from ``texts``."""
    budget = use.budget
    return texts(
        f"budget.{budget.scope}_used",
        name=budget.name,
        used=format_amount(texts, budget.measure, use.used),
        most=format_amount(texts, budget.measure, budget.most),
    )


def budget_request(use: BudgetUse, path: str, texts: Catalogue) -> Request:
    """Return the request that people are asked at ``path`` when the budget of ``use`` is reached, from
    ``texts``. Its metadata has all that its texts are made of."""
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
    """Return the reached budget that ``request``, which is at ``path``, asks people about.

    None unless it is exactly what `budget_request` makes, in any language. Anyone who can write to the
    journal can write another request, with a prompt that says something else than its options do.
    """
    use = _parse_use(budget_asked(request) or {})
    if use is None or not use.is_reached:
        return None
    asked = (budget_request(use, path, catalogue(language)) for language in LANGUAGES)
    return use if any(request == each for each in asked) else None


def _parse_use(asked: Mapping[str, Json]) -> BudgetUse | None:
    """Return the use of a budget that the metadata ``asked`` of a request says, None if it says none."""
    scope, name, measure, unpriced = (asked.get(each) for each in ("scope", "name", "measure", "unpriced"))
    if scope not in SCOPES or measure not in MEASURES or not isinstance(name, str):
        return None
    most, used = _parse_amount(asked.get("most")), _parse_amount(asked.get("used"))
    if not most or used is None or type(unpriced) is not int or not 0 <= unpriced <= _MOST:
        return None
    return BudgetUse(Budget(scope, name, measure, most), used, unpriced)


def _parse_amount(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return cast("float", value) if is_number and 0 <= cast("float", value) <= _MOST * 1_000 else None


def budget_asked(request: Request) -> Mapping[str, Json] | None:
    """What ``request`` says of the budget that it is about; None if it is about none."""
    asked = request.metadata.get(BUDGET)
    return asked if isinstance(asked, Mapping) else None
