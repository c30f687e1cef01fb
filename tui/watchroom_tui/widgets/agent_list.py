"""The list of agents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import BudgetUse
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model
from watchroom.features.plans.rows import Plan
from watchroom.features.tasks.view import TaskView
from watchroom.kernel.rules.activity import sparkline_counts
from watchroom.model import Row, outcome_of
from watchroom.texts import catalogue

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.budgets import (
    budget_amount,
    budget_bar,
    budget_next,
    budget_percent,
    budget_style,
)
from watchroom_tui.formatters.columns import Column, format_age, pad, sparkline
from watchroom_tui.formatters.machines import RemoteAgent, connection_text, left_out_text
from watchroom_tui.formatters.need_texts import plan_text
from watchroom_tui.formatters.styled_text import Line, Span, sentence
from watchroom_tui.formatters.task_tree import ended_agents, resume_commands
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

BUDGETS_FROM: Final = 110
"""Minimum number of columns to show the amount of a budget in words."""
REASONS_FROM: Final = 96
"""Minimum number of columns to show why a connection is lost."""
NEXT_FROM: Final = 150
"""Minimum number of columns to show whether a budget holds calls."""


class AgentList(ItemList[AgentView | RemoteAgent]):
    """List of agents: status, layer, last action, and a sparkline of the last two minutes. Ended agents are
    dimmed. Agents of other machines can follow."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=11, most=28),
        Column(from_width=70),
        Column(least=12, cut="middle", grows=True),
        Column(least=5, align="right", from_width=90),
        Column(least=5),
        Column(least=4, align="right"),
        Column(least=3),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._usage: Mapping[str, UsageTotal] = {}
        self._budgets: Mapping[str, BudgetUse] = {}
        self._tasks: Sequence[TaskView] = ()
        self._ended: Mapping[str, Row] = {}
        self._resumes: Mapping[str, str] = {}
        self._plans: Mapping[str, Plan] = {}

    @property
    def agent(self) -> AgentView | None:
        """The agent under the cursor. None if it is on another machine."""
        item = self.item
        return None if isinstance(item, RemoteAgent) else item

    def show_team(self, model: Model, remote: Sequence[RemoteAgent] = ()) -> None:
        """Show the agents of the model, then agents of other machines. Machines without a connection come
        first."""
        if model.tasks is not self._tasks:
            self._tasks, self._ended = model.tasks, ended_agents(model.tasks)
        self._resumes = resume_commands(model)
        self._usage, self._plans = model.usage.agents, model.plans
        # Most used first, because an agent's fullest budget counts.
        used = [use for use in model.budgets if use.budget.scope == "agent"]
        self._budgets = {use.budget.name: use for use in reversed(used)}
        broken = [each for each in remote if each.is_broken]
        others = [each for each in remote if not each.is_broken]
        self.show([*broken, *model.agents, *others] if remote else model.agents)

    def item_key(self, item: AgentView | RemoteAgent) -> Hashable:
        return item.identity if isinstance(item, RemoteAgent) else item.agent.id

    def _cost(self, item: AgentView) -> str:
        used = self._usage.get(item.agent.id)
        return labels.cost_text(used) if used is not None else ""

    def _budget(self, item: AgentView) -> Line:
        """Return the agent's use of its budget, and whether calls are held if that fits."""
        use, width, texts = self._budgets.get(item.agent.id), self.content_area.width, texts_of(self)
        if use is None:
            return ()
        bar, style = budget_bar(use), budget_style(use)
        if width < BUDGETS_FROM:
            said = texts("usage.budget.held_short") if use.is_reached else budget_percent(use)
            return [bar, Span(f" {pad(said, 5, 'right')}", style)]
        amount = budget_amount(use, texts, catalogue(dashboard_of(self).language))
        following = ""
        if use.is_near and width >= NEXT_FROM:
            following = budget_next(use, texts)
        elif use.is_reached:
            following = texts("usage.budget.held_short")
        return [bar, Span(f" {amount}", style), Span(f"  {following}" if following else "", style)]

    def _status_text(self, item: AgentView) -> str:
        resume = self._resumes.get(item.agent.id, "")
        return labels.agent_status_text(item, now_of(self), texts_of(self), resume)

    def cells(self, item: AgentView | RemoteAgent) -> Sequence[Line]:
        return self._remote_cells(item) if isinstance(item, RemoteAgent) else self._local_cells(item)

    def _remote_cells(self, item: RemoteAgent) -> Sequence[Line]:
        texts, view, agent = texts_of(self), item.view, item.agent
        if agent is None:
            style = "dim" if view.state in ("connecting", "connected") else "warning"
            mark = Span("⇄", style)
            # Otherwise the time would not fit.
            with_reason = self.content_area.width >= REASONS_FROM
            said = connection_text(view, dashboard_of(self).version, texts, with_reason=with_reason)
            left_out = left_out_text(view, texts)
            line = [Span(said, style), *([Span(f"  {left_out}", "dim")] if left_out else [])]
            return ([Span(" "), mark], [Span(sanitize(view.name), "strong")], (), line, (), (), (), ())
        name = sanitize(f"{view.name}/{agent.id}")
        age = format_age(agent.heard - view.ahead, now_of(self)) if agent.heard else ""
        if view.is_connected:
            mark, colour = labels.STATUS_MARKS[agent.status], agent_class(agent.id)
            said = sanitize(agent.text) or texts("agents.nothing_yet")
            style = "" if agent.status == "waiting" else "dim"
        else:
            mark, colour, style = Span("?", "warning"), "dim", "dim"
            last = texts(f"legend.agents.{agent.status}")
            said = texts("machine.last_known", status=last, what=sanitize(agent.text))
        return (
            [Span(" "), mark],
            [Span(name, colour)],
            (),
            sentence(said, style),
            (),
            (),
            [Span(age, "dim")],
            (),
        )

    def _local_cells(self, item: AgentView) -> Sequence[Line]:
        now, ended = now_of(self), self._ended.get(item.agent.id)
        colour = "dim" if ended else agent_class(item.agent.id)
        spark_width = min(12, max(3, self.content_area.width // 9))
        doing, age = self._activity(item, ended)
        if (plan := self._plans.get(item.agent.id)) is not None and ended is None:
            planned = texts_of(self)("agents.plans", paths=plan_text(plan.paths))
            doing = [*doing, Span(f"  {planned}", "dim"), Span("")]
        return (
            [Span(" "), labels.ENDED_MARK if ended else labels.STATUS_MARKS[item.status(now)]],
            [Span(sanitize(item.agent.id), colour)],
            [Span(item.agent.layer, "dim")],
            doing,
            [Span(self._cost(item), "dim")],
            self._budget(item),
            [Span(age, "dim")],
            [Span(sparkline(sparkline_counts(item.activity, now), spark_width), colour)],
        )

    def _activity(self, item: AgentView, ended: Row | None) -> tuple[Line, str]:
        """Return the current or last activity of the agent, and its age."""
        texts, now = texts_of(self), now_of(self)
        if ended is not None:
            return [Span(texts("agents.ended"), "dim")], self.age_of(ended)
        says = self._status_text(item)
        if says:
            style = "" if item.status(now) == "waiting" else "dim"
            return sentence(sanitize(says), style), format_age(item.last_heard, now)
        if item.last is None:
            return [Span(texts("agents.nothing_yet"), "dim")], ""
        tool, path = labels.activity_spans(item.last, texts)
        if item.last.zone == "command":
            return sentence(f"{tool.text} {path.text}", tool.style), self.age_of(item.last)
        if outcome_of(item.last) != "ok":
            # The outcome shows why the agent is stuck.
            outcome = labels.outcome_span(item.last, texts, is_open=True)
            return [tool, Span(" "), path, Span("  "), outcome, Span("")], self.age_of(item.last)
        return [tool, Span(" "), path], self.age_of(item.last)

    def copy_text(self, item: AgentView | RemoteAgent) -> str:
        return "/".join(filter(None, item.identity[1:])) if isinstance(item, RemoteAgent) else item.agent.id
