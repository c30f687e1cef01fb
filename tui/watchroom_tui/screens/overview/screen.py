"""The overview screen: the needs, the agents and the activity."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from watchroom.features.overview.agents import AgentView, Steering, order_agents
from watchroom.features.overview.model import Model, Need

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import AgentTarget, MachineTarget, Target
from watchroom_tui.formatters.machines import RemoteNeed, remote_agents
from watchroom_tui.formatters.needs import open_label
from watchroom_tui.keys.actions import Action, bindings
from watchroom_tui.screens.overview.lists import ActivityList, NeedList
from watchroom_tui.widgets.agent_list import AgentList
from watchroom_tui.widgets.containers import Container
from watchroom_tui.widgets.item_list import ItemList

if TYPE_CHECKING:
    from watchroom_tui.services.agent_actions import AgentActions
    from watchroom_tui.services.machine_actions import MachineActions
    from watchroom_tui.services.request_actions import RequestActions

_STEERING: Final[Mapping[str, Steering]] = {"message": "message", "pause": "pause", "end_session": "end"}
"""The actions that steer an agent."""
ORDER_SECONDS: Final = 10
"""Seconds between updates of the order of agents without activity."""


class OverviewScreen(BaseScreen):
    CSS_PATH = "overview.tcss"
    SCREEN_NAME: ClassVar = "overview"
    BINDINGS = bindings("overview")

    def __init__(self) -> None:
        super().__init__()
        self._folds_readings = True
        self._seconds = 0

    def compose_panes(self) -> ComposeResult:
        with Container(id="top", classes="group"):
            yield NeedList(title="pane.needs", empty="empty.needs", id="needs", classes="pane")
            yield AgentList(title="pane.agents", empty=self.empty_key("agents"), id="agents", classes="pane")
        yield ActivityList(
            title="pane.activity", empty=self.empty_key("activity"), id="activity", classes="pane"
        )

    def show_time(self) -> None:
        self._seconds += 1
        if self._seconds % ORDER_SECONDS == 0:
            self.show(self.dashboard.model)

    def show_model(self, model: Model) -> None:
        now = self.dashboard.now()
        app = self.dashboard
        remote = app.remote_needs
        self.query_one("#needs", NeedList).show((*app.needs, *remote) if remote else app.needs)
        ordered = model._replace(agents=order_agents(model.agents, now))
        machines = app.machines if app.is_live else ()
        self.query_one("#agents", AgentList).show_team(ordered, [*remote_agents(machines, app.version)])
        activity = self.query_one("#activity", ActivityList)
        if self._folds_readings:
            activity.show_folded(model.activity_log)
        else:
            activity.show_rows(model.recent)

    @property
    def current_need(self) -> Need | None:
        need = self.query_one("#needs", NeedList).item
        return None if isinstance(need, RemoteNeed) else need

    @property
    def _remote_need(self) -> RemoteNeed | None:
        need = self.query_one("#needs", NeedList).item
        return need if isinstance(need, RemoteNeed) else None

    def go_to(self, target: Target) -> None:
        if isinstance(target, MachineTarget):
            needs = self.query_one("#needs", NeedList)
            needs.move_to(target.identity)
            self.front(needs)
        else:
            super().go_to(target)

    def mark_seen(self) -> bool:
        need = self._remote_need
        if need is not None:
            self._machine_actions.mark_as_seen(need)
        return need is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("approve", "reject"):
            remote, need = self._remote_need, self.current_need
            if remote is not None:
                return self._is_in("needs") and action in remote.answers
            answers = need.answers if need is not None else ()
            is_possible = action in answers or (action == "approve" and "leave" in answers)
            return self._is_in("needs") and is_possible
        if action == "commit_work":
            return bool(self.dashboard.model.trees)
        if action in _STEERING:
            view = self.agent_to_pause
            return self._steers and view is not None and view.allows(_STEERING[action])
        return True

    def why_not(self, action: Action) -> str:
        if action.name not in _STEERING or not self._steers:
            return super().why_not(action)
        return self._agent_actions.why_not(_STEERING[action.name], self._agent)

    @property
    def _steers(self) -> bool:
        """Whether the item under the cursor is an agent, or the need of a parked agent."""
        return (self._is_in("agents") and self.agent_to_pause is not None) or self._parked_agent is not None

    def label_of(self, action: Action) -> str:
        texts, need = self.dashboard.texts, self.query_one("#needs", NeedList).item
        if need is None or not self._is_in("needs"):
            return super().label_of(action)
        if action.id == "open":
            return open_label(need, texts, can_act=self.dashboard.can_act)
        if action.id == "approve_need" and isinstance(need, Need) and need.kind == "parked":
            return texts("action.resume_at_reset.label")
        return super().label_of(action)

    def _is_in(self, pane: str) -> bool:
        return self.focused is not None and self.focused.id == pane

    def action_approve(self) -> None:
        need, remote = self.current_need, self._remote_need
        if remote is not None:
            self._machine_actions.approve_at_a_glance(remote)
        elif need is not None and need.kind == "parked":
            self._agent_actions.resume_at_reset(need.agent)
        elif need is not None:
            self._request_actions.approve_need(need)

    def action_reject(self) -> None:
        if self._remote_need is not None:
            self._machine_actions.reject(self._remote_need)
        elif self.current_need is not None:
            self._request_actions.reject_need(self.current_need)

    def action_message(self) -> None:
        self._agent_actions.write_message(self._agent)

    def action_pause(self) -> None:
        self._agent_actions.toggle_pause(self._agent)

    def action_end_session(self) -> None:
        self._agent_actions.end_session(self._agent)

    def action_commit_work(self) -> None:
        self._agent_actions.commit_work(self._agent)

    def action_show_terminal(self) -> None:
        self._agent_actions.show_terminal(self._agent)

    def action_revert_work(self) -> None:
        self._agent_actions.revert_work(self._agent)

    @property
    def agent_to_pause(self) -> AgentView | None:
        return self._parked_agent or self.query_one("#agents", AgentList).agent

    @property
    def _parked_agent(self) -> AgentView | None:
        """The parked agent of the need under the cursor."""
        need = self.current_need
        if need is None or need.kind != "parked" or not self._is_in("needs"):
            return None
        return self.dashboard.model.agent(need.agent)

    @property
    def _agent(self) -> str:
        view = self.agent_to_pause
        return view.agent.id if view else ""

    @cached_property
    def _agent_actions(self) -> AgentActions:
        from watchroom_tui.services.agent_actions import AgentActions

        return AgentActions(self.dashboard)

    @cached_property
    def _request_actions(self) -> RequestActions:
        from watchroom_tui.services.request_actions import RequestActions

        return RequestActions(self.dashboard)

    @cached_property
    def _machine_actions(self) -> MachineActions:
        from watchroom_tui.services.machine_actions import MachineActions

        return MachineActions(self.dashboard)

    def action_readings(self) -> None:
        """Fold successive reads into one line, or unfold them."""
        self._folds_readings = not self._folds_readings
        self.show_model(self.dashboard.model)

    @on(ItemList.Opened, "#agents")
    async def open_agent(self) -> None:
        view = self.query_one("#agents", AgentList).agent
        if view:
            await self.dashboard.navigator.go_to("agents", AgentTarget(view.agent.id))

    @on(ItemList.Opened, "#needs")
    async def open_need(self) -> None:
        if self._remote_need is not None:
            self._machine_actions.show(self._remote_need)
        elif self.current_need is not None:
            await self.dashboard.navigator.go_to_need(self.current_need)

    @on(ItemList.Opened, "#activity")
    def open_row(self) -> None:
        from watchroom_tui.dialogs.row import RowDialog

        activity = self.query_one("#activity", ActivityList)
        row = activity.item
        if row is None:
            return
        if activity.is_folded(row):
            self.action_readings()
        else:
            self.app.push_screen(RowDialog(row))
