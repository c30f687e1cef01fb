"""Actions on agents and tasks from any screen: write, pause, resume, end, commit work, revert work and show
terminals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from watchroom.errors import WatchroomError
from watchroom.features.overview.agents import AgentView, Steering
from watchroom.features.sessions.rows import AT_RESET
from watchroom.features.tasks.rules import Member
from watchroom.features.tasks.view import TaskView
from watchroom.features.trees.rows import REPO, split_repo_path
from watchroom.kernel.journal import Journal
from watchroom.model import CANCEL, END_TASK, MESSAGE, PAUSE, RESUME, TERMINATE, Json, actor_kind

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.agent_commit import commit_agent
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.hand_over import hand_over
from watchroom_tui.dialogs.revert import RevertSubject, ask_to_revert
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.labels import MOST_NAMED, SUBJECT_WIDTH, reset_time
from watchroom_tui.formatters.task_tree import below
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.agent_terminal import jump_to_terminal
from watchroom_tui.services.change_comments import ChangeComments

if TYPE_CHECKING:
    from watchroom.features.trees.reads import TreeState


class AgentActions:
    """The actions of the person at ``app``. Unsent messages are kept among the drafts."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app

    def write_message(self, agent: str) -> None:
        """Ask the person for a message to ``agent``, and send the message. Show when the agent reads the
        message, or why the agent cannot receive it."""
        if self._is_possible("message", agent):
            self._app.open_editor(partial(self._write, agent))

    def send_comments_or_write(self, agent: str) -> None:
        """Send the comments on the changes of ``agent``, after a confirmation. Without comments, ask for a
        message."""
        comments = ChangeComments(self._app)
        if not comments.list_unsent(agent):
            self.write_message(agent)
        elif self._is_possible("message", agent):
            self._start(partial(comments.send, agent, self._reading_text(agent)))

    def commit_work(self, agent: str) -> None:
        """Let the person commit or try the work of ``agent`` in a repository."""
        if agent:
            self._start(partial(self._commit_work, agent))

    def hand_over(self, agent: str) -> None:
        """Show the briefing on the work of ``agent``, and let the person hand the work over."""
        if self.can_act():
            self._start(partial(hand_over, self._app, agent))

    def show_terminal(self, agent: str) -> None:
        """Show the terminal of ``agent``, or the reason why it cannot be shown."""
        if agent:
            self._start(partial(self._show_terminal, agent))

    def toggle_pause(self, agent: str) -> None:
        """Pause ``agent``, or resume the agent if it is paused or stopped by an error. Show the reason if
        neither is possible."""
        view = self._find(agent)
        if view is None or not self._is_possible("pause", agent):
            return
        texts, name = self._app.texts, sanitize(agent)
        tool, key = (RESUME, "session.resumed") if view.is_resumable else (PAUSE, "session.paused")
        done = texts(key, agent=name)
        self._start(partial(self._app.carry_out, tool, {"agent_id": agent}, done))

    def resume_at_reset(self, agent: str) -> None:
        """Permit one automatic resume of ``agent`` when its limit resets. Show the reason if this is not
        possible."""
        view = self._find(agent)
        parking = view.parking if view is not None else None
        if not self._is_possible("leave", agent) or parking is None or parking.resets is None:
            return
        texts, name = self._app.texts, sanitize(agent)
        done = texts("session.resumes_at", agent=name, time=reset_time(parking.resets, self._app.now()))
        self._start(partial(self._app.carry_out, RESUME, {"agent_id": agent, "when": AT_RESET}, done))

    def revert_work(self, agent: str) -> None:
        """Preview a revert of the work of ``agent``. The person chooses the start."""
        if agent:
            ask_to_revert(self._app, RevertSubject(agent))

    def end_session(self, agent: str) -> None:
        """End the session of ``agent`` permanently, after a confirmation. Show the reason if the session
        cannot end."""
        if not self._is_possible("end", agent):
            return
        texts, name = self._app.texts, sanitize(agent)
        question, done = texts("session.end_question", agent=name), texts("session.ended", agent=name)
        view = self._find(agent)
        if view is not None and not view.is_present:
            question += f" {self._reader_text('session.ends', agent)}"
            done = self._reader_text("session.ends_later", agent)
        act = partial(self._confirm_and_act, texts("session.end_title"), question)
        self._start(partial(act, CANCEL, {"agent_id": agent}, done))

    def end_agent(self, task: TaskView, member: Member) -> None:
        """End ``member`` of ``task`` and all agents that ``member`` spawned, after a confirmation."""
        if not self.can_act():
            return
        texts = self._app.texts
        name = sanitize(member.id)
        # A task does not continue without its first agent.
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
        """Cancel the unfinished ``task``, after a confirmation."""
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
        """Return whether the person can act now. Show the reason if not."""
        if not self._app.can_act:
            self._app.explain_read_only()
        return self._app.can_act

    def _start(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run ``work``, which waits for the person, in a worker."""
        self._app.run_worker(work, group="agents")

    def _find(self, agent: str) -> AgentView | None:
        return self._app.model.agent(agent) if self._app.can_act else None

    def why_not(self, steering: Steering, agent: str) -> str:
        """Return why the person cannot steer ``agent`` in this way now. Empty if it is possible."""
        view, texts, name = self._app.model.agent(agent), self._app.texts, sanitize(agent)
        if view is not None and view.allows(steering):
            return ""
        if view is None or view.session is None:
            key = "session.none" if steering == "message" else "session.none_to_steer"
            return texts(key, agent=name)
        if steering == "message":
            return texts("session.reads_never", agent=name)
        if not view.can_end:
            return texts("session.was_ended", agent=name)
        if not view.is_present:
            return self._reader_text("session.not_run", agent)
        if view.leave and view.parking is not None and view.parking.resets is not None:
            time = reset_time(view.parking.resets, self._app.now())
            return texts("session.resumes_at", agent=name, time=time)
        return texts("session.no_reset" if view.parking is not None else "session.not_parked", agent=name)

    def _is_possible(self, steering: Steering, agent: str) -> bool:
        """Return whether the person can steer ``agent`` in this way now. Show the reason if not."""
        if not self.can_act():
            return False
        reason = self.why_not(steering, agent)
        if reason:
            self._app.show_message(reason, "warning")
        return not reason

    def _reader_text(self, key: str, agent: str) -> str:
        """Return the text ``key`` about ``agent``, which has no process, with the way to resume it."""
        resume, view = self._app.model.message_reader(agent).hint, self._app.model.agent(agent)
        texts, session = self._app.texts, view.session if view is not None else None
        if session is not None and session.attached_client:
            client, folder = sanitize(session.attached_client), sanitize(session.folder)
            how = texts("session.resume_client", client=client, folder=folder)
        elif resume:
            how = texts("session.resume_with", resume=sanitize(resume))
        else:
            how = texts("session.resume")
        return texts(key, agent=sanitize(agent), resume=how)

    def _reading_text(self, agent: str) -> str:
        """Return a text about the time at which ``agent`` would read a message sent now."""
        view = self._find(agent)
        when = self._app.model.message_reader(agent).when
        if view is not None and not view.is_present and when != "next":
            return self._reader_text("session.reads_lost" if view.is_lost else "session.reads_stopped", agent)
        is_idle = view is not None and view.status(self._app.now()) == "idle"
        key = "session.reads_idle" if when == "now" and is_idle else f"session.reads_{when}"
        return self._app.texts(key, agent=sanitize(agent))

    async def _confirm_and_act(
        self, title: str, question: str, tool: str, arguments: Mapping[str, Json], done: str
    ) -> None:
        """Call ``tool`` if the person confirms, and show ``done``. The texts must be sanitized."""
        if await self._app.push_screen_wait(ConfirmDialog(title, question)):
            await self._app.carry_out(tool, arguments, done)

    async def _write(self, agent: str) -> None:
        texts = self._app.texts
        key = f"message {agent}"
        draft = self._app.drafts.find(TextDraft, key) or TextDraft(key, texts("session.draft", agent=agent))
        title = texts("session.message_title", agent=sanitize(agent))
        text = await enter_text(self._app, draft, title, partial(self._reading_text, agent))
        arguments: Mapping[str, Json] = {"to": agent, "payload": {"text": text}}
        done = f"{texts('session.sent')} {self._reading_text(agent)}"
        if text is not None and await self._app.carry_out(MESSAGE, arguments, done):
            self._app.drafts.drop(TextDraft, key)

    async def _commit_work(self, agent: str) -> None:
        """Let the person commit or try the work of ``agent`` in the tree that the agent changed last."""
        app = self._app
        if not self.can_act():
            return
        try:
            states = await asyncio.to_thread(_read_trees, app.journal)
        except (WatchroomError, OSError) as error:
            reason = error.message(app.language) if isinstance(error, WatchroomError) else str(error)
            app.show_message(reason, "error")
            return
        changed = {each.tree.id: each for each in states if agent in each.agents}
        if not changed:
            app.show_message(app.texts("commit_agent.nothing", agent=sanitize(agent)), "warning")
            return
        heads = (each.head for each in app.model.tree_files if each.head.actor == agent)
        newest = sorted(heads, key=lambda row: row.seq, reverse=True)
        trees = [split_repo_path(row.path)[0] for row in newest if row.zone == REPO]
        state = next((changed[each] for each in trees if each in changed), next(iter(changed.values())))
        agents = [each for each in state.agents if actor_kind(each) == "agent"]
        await commit_agent(app, state.tree, agents, agent)

    async def _show_terminal(self, agent: str) -> None:
        """Show the terminal of the client of ``agent``, or the reason why it cannot be shown."""
        app, view = self._app, self._app.model.agent(agent)
        workspace = await app.wait_for_workspace()
        if workspace is None:
            app.explain_read_only()
            return
        session = view.session.path if view is not None and view.session is not None else ""
        found = await asyncio.to_thread(jump_to_terminal, workspace, session, os.environ)
        values = {name: sanitize(each) for name, each in found.values.items()}
        text = app.texts(f"terminal.{found.key}", agent=sanitize(agent), **values) if found.key else ""
        if text:
            app.show_message(text, "warning")


def _read_trees(journal: Journal) -> list[TreeState]:
    # Imported on first use, because the module for git is slow to load.
    from watchroom.features.trees.reads import TreeReader

    return TreeReader(journal).describe_trees()
