"""Set a budget: owner, measure and amount."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import MEASURES, BudgetScope, Measure, format_amount
from watchroom.features.overview.model import Model
from watchroom.model import SET_BUDGET
from watchroom.texts import catalogue

from watchroom_tui.context import Dashboard, dashboard_of
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.labels import format_count
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import content

_SUGGESTED: Final[dict[Measure, float]] = {"cost": 20, "tokens": 1_000_000, "seconds": 3600, "steps": 200}
"""The amounts to suggest for unset budgets."""
_MAX_CHARACTERS: Final = 20


class BudgetOwner(NamedTuple):
    """The owner of a budget. ``name``: the agent or task. Empty for the team, or for each agent, session or
    task in ``scope``."""

    scope: BudgetScope
    name: str = ""


class BudgetSetting(NamedTuple):
    """A budget to set. ``most``: the limit, None to remove the budget."""

    owner: BudgetOwner
    measure: Measure
    most: float | None


class BudgetKnown(NamedTuple):
    """The usage and limit of a budget.

    - ``used``: the usage, None if it is not counted or if no token has a known price.
    - ``most``: the limit, None without a limit.
    - ``unpriced``: the number of tokens whose cost is missing in ``used``.
    """

    used: float | None = None
    most: float | None = None
    unpriced: int = 0


def list_owners(model: Model) -> list[BudgetOwner]:
    """Return the possible owners of budgets: the team, each agent, each session and each task, then single
    agents and tasks by name."""
    every = [BudgetOwner("team"), BudgetOwner("agent"), BudgetOwner("session"), BudgetOwner("task")]
    agents = [BudgetOwner("agent", view.agent.id) for view in model.agents]
    return [*every, *agents, *(BudgetOwner("task", task.id) for task in model.tasks)]


def find_known(model: Model, owner: BudgetOwner, measure: Measure) -> BudgetKnown:
    """Return the usage and limit of a budget in ``model``."""
    total = find_usage(model, owner)
    for use in model.budgets:
        if (use.budget.scope, use.budget.name, use.budget.measure) == (owner.scope, owner.name, measure):
            is_unpriced = measure == "cost" and total is not None and total.known_cost is None
            return BudgetKnown(None if is_unpriced else use.used, use.budget.most, use.unpriced)
    if total is None or measure not in ("cost", "tokens"):
        return BudgetKnown()
    return (
        BudgetKnown(total.tokens)
        if measure == "tokens"
        else BudgetKnown(total.known_cost, None, total.unpriced)
    )


def find_usage(model: Model, owner: BudgetOwner) -> UsageTotal | None:
    """Return the usage of ``owner``, or None if ``owner`` means several agents, sessions or tasks."""
    if owner.scope == "team":
        return model.usage.team
    if not owner.name:
        return None
    totals = model.usage.agents if owner.scope == "agent" else model.usage.tasks
    return totals.get(owner.name, UsageTotal())


def find_measure(model: Model, owner: BudgetOwner) -> Measure:
    """Return the initial measure: tokens if no price is known, because a budget in dollars would then limit
    nothing."""
    return "tokens" if (find_usage(model, owner) or model.usage.team).known_cost is None else "cost"


def suggest_amount(measure: Measure, known: BudgetKnown) -> float:
    """Return the amount to suggest: the current limit, else a default of at least twice the usage."""
    if known.most is not None:
        return known.most
    amount = _SUGGESTED[measure]
    while amount < 2 * (known.used or 0.0):
        amount *= 2
    return amount


def parse_amount(text: str) -> float | None:
    """Return the amount in ``text``, such as ``$2.50`` or ``500,000``, or None if ``text`` is empty. Raise
    ValueError."""
    bare = text.strip().lstrip("$").replace(",", "").replace("_", "")
    return float(bare) if bare else None


class OwnerList(ItemList[BudgetOwner]):
    """List of the possible owners of budgets, with the limit and usage of one measure."""

    COLUMNS: ClassVar = (
        Column(least=8, most=40, cut="middle"),
        Column(least=12, grows=True),
    )

    def __init__(self, model: Model, measure: Measure) -> None:
        super().__init__(title="budget.owner", empty="empty.usage", id="owners", classes="pane")
        self._model = model
        self.measure: Measure = measure
        self._task_titles = {task.id: task.row.message for task in model.tasks}

    def item_key(self, item: BudgetOwner) -> Hashable:
        return item

    def owner_name(self, owner: BudgetOwner) -> str:
        """Return the displayed name of ``owner``."""
        if not owner.name:
            return texts_of(self)(f"budget.{owner.scope}")
        return sanitize(self._task_titles.get(owner.name, owner.name))

    def cells(self, item: BudgetOwner) -> Sequence[Line]:
        style = agent_class(item.name) if item.scope == "agent" and item.name else "strong"
        known = find_known(self._model, item, self.measure)
        texts, words = texts_of(self), catalogue(dashboard_of(self).language)
        parts = []
        if known.most is not None:
            parts.append(texts("budget.most", amount=format_amount(words, self.measure, known.most)))
        if known.used is not None:
            shown = format_amount(words, self.measure, known.used)
            parts.append(texts("budget.used", amount=f"≥ {shown}" if known.unpriced else shown))
        elif known.unpriced:
            parts.append(texts("budget.unpriced", count=format_count(known.unpriced)))
        return [Span(self.owner_name(item), style)], [Span("  ".join(parts), "dim")]

    def copy_text(self, item: BudgetOwner) -> str:
        return self.owner_name(item)


class BudgetDialog(ModalDialog[BudgetSetting | None]):
    """Form for a budget: owner, amount and measure. Enter submits the form from every field.

    - ``model``: the agents, tasks, budgets and usage.
    - ``owner``, ``measure``: the initial selection.
    """

    BINDINGS = [*bindings("dialog"), *bindings("budget")]  # noqa: RUF012  # as textual has it
    SCOPES: ClassVar[tuple[Scope, ...]] = ("budget", "dialog")

    def __init__(self, model: Model, owner: BudgetOwner, measure: Measure) -> None:
        super().__init__()
        self._model = model
        self._owner = owner
        self._measure: Measure = measure
        self._owners = OwnerList(model, measure)
        self._amount = Input(id="amount", max_length=_MAX_CHARACTERS, select_on_focus=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="budget-form"):
            yield self._owners
            yield self._amount
            note = Static(Content(self.dashboard.texts("budget.about")), id="note", markup=False)
            note.border_subtitle = content(self.key_hints())
            yield note

    def on_mount(self) -> None:
        super().on_mount()
        self._owners.show(list_owners(self._model))
        self._owners.move_to(self._owner)
        self._owners.focus()
        self._suggest()

    @on(ItemList.Highlighted, "#owners")
    def choose_owner(self) -> None:
        self._suggest()

    def action_measure(self, step: int) -> None:
        """Select the next measure (1) or the previous measure (-1)."""
        self._measure = MEASURES[(MEASURES.index(self._measure) + step) % len(MEASURES)]
        self._owners.measure = self._measure
        self._owners.redraw_changed()
        self._suggest()

    def action_back(self) -> None:
        self.dismiss(None)

    def _suggest(self) -> None:
        owner = self._owners.item
        if owner is None:
            return
        amount = suggest_amount(self._measure, find_known(self._model, owner, self._measure))
        self._amount.value = f"{amount:g}" if self._measure == "cost" else f"{amount:.0f}"
        self._amount.border_title = content(self.dashboard.texts(f"budget.limit_{self._measure}"))

    def on_key(self, event: events.Key) -> None:
        """Start a new amount if a digit is typed in the list."""
        if self._owners.has_focus and event.character is not None and event.character in "0123456789.":
            event.stop()
            event.prevent_default()
            self._amount.value = event.character
            self._amount.focus()
            self._amount.call_later(self._amount.action_end)

    @on(ItemList.Opened, "#owners")
    @on(Input.Submitted, "#amount")
    def set_budget(self) -> None:
        """Close the dialog with the budget, or show that the amount is invalid."""
        owner = self._owners.item
        if owner is None:
            return
        try:
            most = parse_amount(self._amount.value)
        except ValueError:
            given = sanitize(self._amount.value)
            self.dashboard.show_message(self.dashboard.texts("budget.unclear", given=given), "warning")
            return
        self.dismiss(BudgetSetting(owner, self._measure, most))


async def set_budget(app: Dashboard, owner: BudgetOwner | None = None) -> None:
    """Ask for a budget, and set it. Await this in a worker. ``owner``: the initial selection, default: the
    team."""
    if not app.can_act:
        app.explain_read_only()
        return
    first = owner or BudgetOwner("team")
    setting = await app.push_screen_wait(BudgetDialog(app.model, first, find_measure(app.model, first)))
    if setting is None:
        return
    (scope, name), measure, most = setting
    titles = {task.id: task.row.message for task in app.model.tasks}
    whose = sanitize(titles.get(name, name)) if name else app.texts(f"budget.{scope}")
    if most is None:
        done = app.texts("budget.removed", owner=whose)
    else:
        amount = format_amount(catalogue(app.language), measure, most)
        done = app.texts("budget.done", owner=whose, amount=amount)
    arguments = {"scope": scope, "name": name or None, "measure": measure, "most": most}
    await app.carry_out(SET_BUDGET, arguments, done)
