"""What people do to agents and tasks from any screen: write, pause, resume, end. Each is a tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from watchroom.features.overview.agents import AgentView, Reading
from watchroom.features.tasks.rules import Member
from watchroom.features.tasks.view import TaskView
from watchroom.model import CANCEL, END_TASK, MESSAGE, PAUSE, RESUME, TERMINATE, Json

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.revert import RevertSubject, ask_to_revert
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.labels import MOST_NAMED, SUBJECT_WIDTH
from watchroom_tui.formatters.task_tree import below
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.agent_terminal import show_terminal
from watchroom_tui.services.agent_work import commit_work
from watchroom_tui.services.change_comments import ChangeComments
from watchroom_tui.services.pausing import is_held


class AgentActions:
    """What the person at ``app`` can do. A message that was written and not sent is kept among the drafts."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app

    def write_message(self, agent: str) -> None:
        """Have the person write to ``agent``, and say when it reads that, or why it never does."""
        if self._can_receive(agent, ("now", "resumed", "next")):
            self._app.open_editor(partial(self._write, agent))

    def send_comments_or_write(self, agent: str) -> None:
        """Have the person send the comments on the changes of ``agent``; without any, write to it."""
        comments = ChangeComments(self._app)
        if not comments.list_unsent(agent):
            self.write_message(agent)
        elif self._can_receive(agent, ("now", "resumed", "next")):
            self._start(partial(comments.send, agent, self._reading_text(agent)))

    def commit_work(self, agent: str) -> None:
        """Have the person commit or try the work of ``agent`` in a repository."""
        if agent:
            self._start(partial(commit_work, self._app, agent))

    def show_terminal(self, agent: str) -> None:
        """Show the terminal of ``agent``, or say why there is none."""
        if agent:
            self._start(partial(show_terminal, self._app, agent))

    def toggle_pause(self, agent: str) -> None:
        """Pause ``agent``, or resume it where it is paused or an error stopped it; says why not."""
        view = self._find(agent)
        if view is None or not self._can_receive(agent):
            return
        texts, name = self._app.texts, sanitize(agent)
        if not view.is_present:
            self._app.show_message(self._reader_text("session.not_run", agent), "warning")
        elif is_held(view):
            self._start(partial(self._act, RESUME, {"agent_id": agent}, texts("session.resumed", agent=name)))
        else:
            self._start(partial(self._act, PAUSE, {"agent_id": agent}, texts("session.paused", agent=name)))

    def revert_work(self, agent: str) -> None:
        """Show what taking the work of ``agent`` back would change, since when the person chooses."""
        if agent:
            ask_to_revert(self._app, RevertSubject(agent))

    def end_session(self, agent: str) -> None:
        """End the session of ``agent`` for good, after the person confirms it; says why not."""
        if not self._can_receive(agent):
            return
        texts, name = self._app.texts, sanitize(agent)
        question = texts("session.end_question", agent=name)
        view = self._find(agent)
        if view is not None and not view.is_present:
            question += f" {self._reader_text('session.ends', agent)}"
        act = partial(self._confirm_and_act, texts("session.end_title"), question)
        self._start(partial(act, CANCEL, {"agent_id": agent}, texts("session.ended", agent=name)))

    def end_agent(self, task: TaskView, member: Member) -> None:
        """End ``member`` of ``task`` and all agents that it made, after the person confirms it."""
        if not self.can_act():
            return
        texts = self._app.texts
        name = sanitize(member.id)
        # Without its first agent a task does not go on.
        is_first = member.spawned is not None and not member.parent
        question = texts("tasks.end_first" if is_first else "tasks.end_question", agent=name)
        made = below(task, member.id)
        if made:
            named = ", ".join(made[:MOST_NAMED]) + (" …" if len(made) > MOST_NAMED else "")
            question += f" {texts('tasks.end_below', count=len(made), agents=sanitize(named))}"
        act = partial(self._confirm_and_act, texts("tasks.end_title"), question)
        done = texts("tasks.agent_ended", agent=name)
        self._start(partial(act, TERMINATE, {"agent_id": member.id}, done))

    def cancel_task(self, task: TaskView) -> None:
        """Cancel ``task``, which nobody finished, after the person confirms it."""
        if not self.can_act():
            return
        texts = self._app.texts
        name = fit(sanitize(task.row.message), SUBJECT_WIDTH).rstrip()
        at_work = sum(each.ended is None for each in task.members)
        question = texts("tasks.cancel_question", task=name, count=at_work)
        act = partial(self._confirm_and_act, texts("tasks.cancel_title"), question)
        arguments = {"task_id": task.id, "status": "cancelled", "report": ""}
        self._start(partial(act, END_TASK, arguments, texts("tasks.cancelled", task=name)))

    def can_act(self) -> bool:
        """Whether anything can be done now; else says why not."""
        if not self._app.can_act:
            self._app.explain_read_only()
        return self._app.can_act

    def _start(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something that waits for the person, beside all else."""
        self._app.run_worker(work, group="agents")

    def _find(self, agent: str) -> AgentView | None:
        return self._app.model.agent(agent) if self._app.can_act else None

    def _can_receive(self, agent: str, when: Sequence[Reading] = ("now", "resumed")) -> bool:
        """Whether the agent heeds at one of these times what is said to it; else says why not."""
        if not self.can_act():
            return False
        view, texts = self._find(agent), self._app.texts
        if view is None or view.session is None:
            self._app.show_message(texts("session.none"), "warning")
        elif (reading := self._app.model.message_reader(agent).when) not in when:
            key = "session.reads_never" if reading == "never" else "session.was_ended"
            self._app.show_message(texts(key, agent=sanitize(agent)), "warning")
        else:
            return True
        return False

    def _reader_text(self, key: str, agent: str) -> str:
        """The text ``key`` about an agent whose process is not there, with the command that resumes it."""
        resume = self._app.model.message_reader(agent).hint
        texts = self._app.texts
        how = texts("session.resume_with", resume=sanitize(resume)) if resume else texts("session.resume")
        return texts(key, agent=sanitize(agent), resume=how)

    def _reading_text(self, agent: str) -> str:
        """When ``agent`` reads what is written to it now."""
        view = self._find(agent)
        when = self._app.model.message_reader(agent).when
        if view is not None and not view.is_present and when != "next":
            return self._reader_text("session.reads_lost" if view.is_lost else "session.reads_stopped", agent)
        is_idle = view is not None and view.status(self._app.now()) == "idle"
        key = "session.reads_idle" if when == "now" and is_idle else f"session.reads_{when}"
        return self._app.texts(key, agent=sanitize(agent))

    async def _act(self, tool: str, arguments: Mapping[str, Json], done: str) -> bool:
        """Call a tool as the person, and say that it is ``done``, or what stood in the way."""
        answer = await self._app.act(tool, arguments)
        if answer is None:
            return False
        if answer["success"]:
            self._app.show_message(done)
        else:
            self._app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
        return bool(answer["success"])

    async def _confirm_and_act(
        self, title: str, question: str, tool: str, arguments: Mapping[str, Json], done: str
    ) -> None:
        """Ask first, then act, then say that it is done. The texts are safe already."""
        if await self._app.push_screen_wait(ConfirmDialog(title, question)):
            await self._act(tool, arguments, done)

    async def _write(self, agent: str) -> None:
        texts = self._app.texts
        key = f"message {agent}"
        draft = self._app.drafts.find(TextDraft, key) or TextDraft(key, texts("session.draft", agent=agent))
        title = texts("session.message_title", agent=sanitize(agent))
        text = await enter_text(self._app, draft, title, self._reading_text(agent))
        arguments: Mapping[str, Json] = {"to": agent, "payload": {"text": text}}
        done = f"{texts('session.sent')} {self._reading_text(agent)}"
        if text is not None and await self._act(MESSAGE, arguments, done):
            self._app.drafts.drop(TextDraft, key)
