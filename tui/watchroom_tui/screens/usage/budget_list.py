"""The list of budgets: the use of each budget, and what happens next."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from watchroom.features.budgets.rules import BudgetUse
from watchroom.features.overview.model import Model
from watchroom.texts import catalogue

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.budgets import (
    budget_amount,
    budget_bar,
    budget_next,
    budget_percent,
    budget_style,
)
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList


class BudgetList(ItemList[BudgetUse]):
    """Budgets of the team, of tasks and of agents, most used first."""

    COLUMNS: ClassVar = (
        Column(least=1),
        Column(least=5, most=8, from_width=70),
        Column(least=8, most=40, cut="middle"),
        Column(least=6),
        Column(least=4, align="right"),
        Column(least=13),
        Column(least=8, grows=True),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._task_titles: Mapping[str, str] = {}

    def show_budgets(self, model: Model) -> None:
        """Show the budgets in ``model``."""
        self._task_titles = {task.id: task.row.message for task in model.tasks}
        self.show(model.budgets)

    def item_key(self, item: BudgetUse) -> Hashable:
        return item.budget.key

    def _owner(self, item: BudgetUse) -> str:
        budget = item.budget
        if budget.scope == "team":
            return texts_of(self)("usage.budget.team")
        return sanitize(self._task_titles.get(budget.name, budget.name))

    def cells(self, item: BudgetUse) -> Sequence[Line]:
        texts, budget = texts_of(self), item.budget
        style = budget_style(item)
        amount = budget_amount(item, texts, catalogue(dashboard_of(self).language))
        scope = "" if budget.scope == "team" else texts(f"usage.budget.{budget.scope}")
        return (
            [Span("")],
            [Span(scope, "dim")],
            [Span(self._owner(item), agent_class(budget.name) if budget.scope == "agent" else "strong")],
            # Two spaces between columns, because each column has several words.
            [Span(" "), budget_bar(item)],
            [Span(budget_percent(item), style)],
            [Span(f" {amount}", style if item.is_near else "")],
            [Span(f" {budget_next(item, texts)}", style)],
        )

    def copy_text(self, item: BudgetUse) -> str:
        return item.budget.key
