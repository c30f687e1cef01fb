"""The usage screen: the usage over time, by agent, by model and by task, and the budgets."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from watchroom.features.overview.model import Model

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import AgentTarget, TaskTarget
from watchroom_tui.dialogs.budget import BudgetOwner, set_budget
from watchroom_tui.keys.actions import bindings
from watchroom_tui.screens.usage.budget_list import BudgetList
from watchroom_tui.screens.usage.chart import UsageChart
from watchroom_tui.screens.usage.usage_list import AgentUsageList, UsageList
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.item_list import ItemList


class UsageScreen(BaseScreen):
    CSS_PATH = "usage.tcss"
    SCREEN_NAME: ClassVar = "usage"
    BINDINGS = bindings("usage")

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="parts", classes="group"):
            yield AgentUsageList(
                title="pane.usage_agents", empty="empty.usage", id="by-agent", classes="pane"
            )
            yield UsageList(title="pane.usage_models", empty="empty.usage", id="by-model", classes="pane")
            yield UsageList(title="pane.usage_tasks", empty="empty.usage", id="by-task", classes="pane -away")
        yield BudgetList(title="pane.budgets", empty="empty.usage", id="budgets", classes="pane -away")
        yield UsageChart(id="chart")

    def show_time(self) -> None:
        self.query_one(UsageChart).show(self.dashboard.model.usage)

    def show_model(self, model: Model) -> None:
        usage = model.usage
        self.query_one(UsageChart).show(usage)
        self.query_one("#by-agent", UsageList).show_usage(usage.agents)
        self.query_one("#by-model", UsageList).show_usage(usage.models)
        budgets = self.query_one(BudgetList)
        budgets.set_class(not model.budgets, "-away")
        budgets.show_budgets(model)
        tasks = self.query_one("#by-task", UsageList)
        tasks.set_class(not usage.tasks, "-away")
        tasks.show_usage(usage.tasks, {task.id: task.row.message for task in model.tasks})

    def action_edit_budget(self) -> None:
        """Set a budget for the selected agent or the owner of the selected budget."""
        focused = self.focused
        owner = None
        if isinstance(focused, BudgetList) and focused.item is not None:
            owner = BudgetOwner(focused.item.budget.scope, focused.item.budget.name)
        elif isinstance(focused, AgentUsageList) and focused.item is not None:
            owner = BudgetOwner("agent", focused.item.name)
        self.dashboard.open_editor(partial(set_budget, self.dashboard, owner), self)

    @on(ItemList.Opened, "#budgets")
    async def open_budget(self) -> None:
        use = self.query_one(BudgetList).item
        if use is not None and use.budget.scope == "agent":
            await self.dashboard.navigator.go_to("agents", AgentTarget(use.budget.name))
        elif use is not None and use.budget.scope == "task":
            await self.dashboard.navigator.go_to("tasks", TaskTarget(use.budget.name))

    @on(ItemList.Opened, "#by-agent")
    async def open_agent(self) -> None:
        entry = self.query_one("#by-agent", AgentUsageList).item
        if entry is not None:
            await self.dashboard.navigator.go_to("agents", AgentTarget(entry.name))
