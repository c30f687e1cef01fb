"""What people do to agents and tasks from any screen: write, end, cancel. Each action is a tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from watchroom.model import END_TASK, MESSAGE, TERMINATE, Json
from watchroom.projections import Member, TaskView

from watchroom_tui.columns import fit
from watchroom_tui.describe import MOST_NAMED, SUBJECT_WIDTH
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.text_input import TextInputDialog
from watchroom_tui.sanitize import sanitize
from watchroom_tui.task_tree import below

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen


class AgentActions:
    """The actions of ``screen``. A message that was written and not sent is kept as a draft."""

    def __init__(self, screen: BaseScreen) -> None:
        self._screen = screen
        self._app = screen.watchroom
        self._drafts: dict[str, str] = {}

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that waits for the person, beside all else."""
        self._screen.run_worker(work, group="steer")

    def write_message(self, agent: str) -> None:
        """Have a person write to an agent that has a session."""
        if self.can_receive(agent):
            self.start(partial(self._write, agent))

    def can_receive(self, agent: str) -> bool:
        """Whether the agent heeds what is said to it now; else says why not."""
        view = self._app.model.agent(agent) if self.can_act() else None
        if view is not None and view.session is None:
            self._app.show_message(self._app.texts("session.none"), "warning")
        return view is not None and view.session is not None

    def can_act(self) -> bool:
        """Whether anything can be done now; else says why not."""
        if not self._app.can_act:
            self._app.explain_read_only()
        return self._app.can_act

    async def act(self, tool: str, arguments: Mapping[str, Json]) -> bool:
        """Call a tool as the person; says what stood in the way."""
        workspace = await self._app.wait_for_workspace()
        if workspace is None:
            return False
        tools = workspace.tools_for_human(self._app.person)
        answer = await asyncio.to_thread(tools.dispatch_tool_call, tool, arguments)
        if not answer["success"]:
            self._app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
        return bool(answer["success"])

    async def confirm_and_act(
        self, title: str, question: str, tool: str, arguments: Mapping[str, Json], done: str
    ) -> None:
        """Ask first, then act, then say that it is done. The texts are safe already."""
        is_confirmed = await self._app.push_screen_wait(ConfirmDialog(title, question))
        if is_confirmed and await self.act(tool, arguments):
            self._app.show_message(done)

    def end_agent(self, task: TaskView, member: Member) -> None:
        """End ``member`` of ``task`` and all agents that it made, after the person confirms it."""
        texts = self._app.texts
        name = sanitize(member.id)
        # Without its first agent a task does not go on.
        is_first = member.spawned is not None and not member.parent
        question = texts("tasks.end_first" if is_first else "tasks.end_question", agent=name)
        made = below(task, member.id)
        if made:
            named = ", ".join(made[:MOST_NAMED]) + (" …" if len(made) > MOST_NAMED else "")
            question += f" {texts('tasks.end_below', count=len(made), agents=sanitize(named))}"
        act = partial(self.confirm_and_act, texts("tasks.end_title"), question)
        done = texts("tasks.agent_ended", agent=name)
        self.start(partial(act, TERMINATE, {"agent_id": member.id}, done))

    def cancel_task(self, task: TaskView) -> None:
        """Cancel ``task``, which nobody finished, after the person confirms it."""
        texts = self._app.texts
        name = fit(sanitize(task.row.message), SUBJECT_WIDTH).rstrip()
        at_work = sum(each.ended is None for each in task.members)
        question = texts("tasks.cancel_question", task=name, count=at_work)
        act = partial(self.confirm_and_act, texts("tasks.cancel_title"), question)
        arguments = {"task_id": task.id, "status": "cancelled", "report": ""}
        self.start(partial(act, END_TASK, arguments, texts("tasks.cancelled", task=name)))

    async def _write(self, agent: str) -> None:
        texts = self._app.texts
        title = texts("session.message_title", agent=sanitize(agent))
        screen = TextInputDialog(title, texts("session.message_hint"), self._drafts.pop(agent, ""))
        text = await self._app.push_screen_wait(screen)
        if text is None:
            self._drafts[agent] = screen.draft
        elif await self.act(MESSAGE, {"to": agent, "payload": {"text": text}}):
            self._app.show_message(texts("session.sent", agent=sanitize(agent)))
        else:
            self._drafts[agent] = text
