"""News as lines: the changes of needs, agents and tasks between two models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from watchroom.features.needs.rules import NeedKind
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.features.sessions.view import RequestView
from watchroom.features.tasks.view import TaskView
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.sanitize import sanitize, shorten

from watchroom_cli.plain.sentences import end_sentence, time_left

Identity = tuple[NeedKind, str, int]
EXPIRES_SOON_SECONDS: Final = 30
"""Seconds before a need's deadline when the need is announced again."""
_SECOND: Final = 1_000_000_000


class Announcement(NamedTuple):
    """A line, and the time of its event in nanoseconds since the epoch."""

    time: int
    text: str


class News:
    """Compares each model with the previous model. Each change is announced once."""

    def __init__(self, texts: Catalogue) -> None:
        self._texts = texts
        self._known: dict[Identity, Need] = {}
        self._warned: set[Identity] = set()
        self._settled: set[Identity] = set()
        self._agents: dict[str, AgentView] = {}
        self._tasks: dict[str, TaskView] = {}

    def begin(self, model: Model, now: int) -> list[Announcement]:
        """Return the needs of the first ``model``. ``now`` is in nanoseconds since the epoch."""
        self._remember(model)
        return [*self._needs(model, now)]

    def advance(self, model: Model, now: int) -> list[Announcement]:
        """Return the changes since the previous model, oldest first."""
        lines = [*self._agent_changes(model, now), *self._task_changes(model), *self._needs(model, now)]
        self._remember(model)
        return sorted(lines, key=lambda each: each.time)

    def mark_settled(self, need: Need) -> None:
        """Do not announce the end of ``need``, which was settled and announced here."""
        self._settled.add(need.identity)

    def _remember(self, model: Model) -> None:
        self._agents = {view.agent.id: view for view in model.agents}
        self._tasks = {task.id: task for task in model.tasks}

    def _needs(self, model: Model, now: int) -> Iterator[Announcement]:
        current = {need.identity: need for need in urgent_needs(model, now)}
        rows = {need.row.seq for need in current.values()}
        for identity, need in self._known.items():
            # A need that continues under another kind, with the same row, is not gone.
            if identity not in current and identity not in self._settled and need.row.seq not in rows:
                yield Announcement(now, self._format_gone(need, model, now))
        for identity, need in current.items():
            is_soon = need.deadline is not None and need.deadline - now <= EXPIRES_SOON_SECONDS * _SECOND
            if identity not in self._known:
                # The row of a lost session may be old, so announce the loss at the current time.
                yield Announcement(
                    now if need.kind == "lost" else need.row.time, self._format_need(need, now)
                )
            elif is_soon and identity not in self._warned:
                yield Announcement(now, self._format_need(need, now))
            if is_soon:
                self._warned.add(identity)
        self._known = current
        self._settled &= current.keys()
        self._warned &= current.keys()

    def _format_need(self, need: Need, now: int) -> str:
        sentence = self._texts("watch.need_line", need=need_sentence(need, self._texts))
        told = end_sentence(sentence, self._texts)
        if need.deadline is None:
            return told
        left = time_left(need.deadline, now, self._texts)
        return self._texts("watch.with_deadline", need=told, left=left)

    def _format_gone(self, need: Need, model: Model, now: int) -> str:
        what = gone_sentence(need, model, now, self._texts)
        return end_sentence(what, self._texts)

    def _agent_changes(self, model: Model, now: int) -> Iterator[Announcement]:
        for view in model.agents:
            before = self._agents.get(view.agent.id)
            change = "joined" if before is None else _change(before, view)
            if change:
                title = shorten(view.session.title) if view.session else ""
                time = now if change == "found" else view.session.last.time if view.session else now
                key = "started_on" if change == "started" and title else change
                text = self._texts(f"watch.agent.{key}", agent=sanitize(view.agent.id), title=title)
                yield Announcement(time, end_sentence(text, self._texts))

    def _task_changes(self, model: Model) -> Iterator[Announcement]:
        for task in model.tasks:
            before = self._tasks.get(task.id)
            name = shorten(task.row.message)
            if before is None:
                text = self._texts("watch.task.begun", task=name)
                yield Announcement(task.row.time, end_sentence(text, self._texts))
            if task.ended is not None and (before is None or before.ended is None):
                status = labels.task_status(task.status, self._texts)
                text = self._texts("watch.task.ended", task=name, status=status)
                report = shorten(task.ended.message)
                text = f"{text}{self._texts('watch.colon')}{report}" if report else text
                yield Announcement(task.ended.time, end_sentence(text, self._texts))


def gone_sentence(need: Need, model: Model, now: int, texts: Catalogue) -> str:
    """Return the sentence that ``need`` is no longer open, with its outcome if known. Without a full stop.

    ``model``: the current model.
    """
    sentence = need_sentence(need, texts)
    if need.kind != "request":
        return texts("watch.gone", need=sentence)
    asked = next((each for each in model.ended_requests if each.row.path == need.key), RequestView(need.row))
    if asked.ended is None and not asked.has_expired(now):
        return texts("watch.gone", need=sentence)
    outcome = labels.request_outcome(asked, texts)
    if asked.is_answered and asked.ended is not None:
        return texts("watch.answered", need=sentence, outcome=outcome, who=sanitize(asked.ended.actor))
    return texts("watch.ended", need=sentence, outcome=outcome)


def _change(before: AgentView, view: AgentView) -> str:
    """Return the agent's change as one word of a text key, empty for no change. Failed and lost agents are
    announced as needs instead."""
    if before.is_lost and not view.is_lost:
        return "found"
    if view.session is None:
        return ""
    is_same = before.session is not None and before.session.path == view.session.path
    old = before.session.status if is_same and before.session is not None else None
    new = view.session.status
    if old == new:
        return ""
    # A parked agent is announced as a need.
    if new in ("done", "cancelled", "paused"):
        return new
    if new in ("running", "idle") and old in (None, "done", "error", "cancelled"):
        return "started"
    return "resumed" if old in ("paused", "parked") and new == "running" else ""
