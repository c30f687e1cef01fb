"""The lists of the tasks screen: tasks, the tree of agents, messages, files, commands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from watchroom.features.overview.agents import AgentView
from watchroom.features.tasks.view import CommandView, MessageView
from watchroom.model import USER, Row
from watchroom.texts import Catalogue

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column, format_age, format_duration, pad
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span, sentence
from watchroom_tui.formatters.task_tree import Loss, MemberItem, TaskItem
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

LAYERS_FROM = 54
ALL_FROM = 66
"""Minimum widths in columns of the tree of agents.

- `LAYERS_FROM`: shows the layer of each agent.
- `ALL_FROM`: also shows the age of each agent's last activity, and roles that ids already contain.
"""
ENDED_WIDTH, TIME_WIDTH = 6, 5
"""The widths in cells of most outcomes and durations. With fixed widths, the text beside them never moves."""


class TaskList(ItemList[TaskItem]):
    """Tasks, newest first: the status, the number of active agents, and the age of each."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=12, grows=True),
        Column(least=8, align="right"),
        Column(least=4, align="right"),
    )

    def item_key(self, item: TaskItem) -> Hashable:
        return item.task.id

    def cells(self, item: TaskItem) -> Sequence[Line]:
        task, texts = item.task, texts_of(self)
        if item.loss is not None:
            mark, said = labels.STATUS_MARKS["lost"], texts("tasks.lost")
        elif task.ended is None and not task.is_present:
            mark, said = labels.STATUS_MARKS["idle"], texts("tasks.stopped")
        elif task.ended is None:
            mark = labels.STATUS_MARKS["waiting"] if item.waiting else labels.TASK_MARKS["open"]
            said = texts("tasks.agent") if item.at_work == 1 else texts("tasks.agents", count=item.at_work)
        else:
            mark = labels.TASK_MARKS[task.status]
            said = labels.task_status(task.status, texts)
        return (
            [Span(" "), mark],
            [Span(sanitize(task.row.message), "dim" if task.ended is not None else "")],
            [Span(said, "dim")],
            [Span(self.age_of(task.row), "dim")],
        )

    def item_text(self, item: TaskItem) -> str:
        return f"{item.task.row.message} {item.task.folder} {item.task.status}"

    def copy_text(self, item: TaskItem) -> str:
        return item.task.folder or item.task.id


class MemberTree(ItemList[MemberItem]):
    """The agents of a task as a tree: the creator, the status and the current activity of each."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=12),
        Column(most=12),
        Column(from_width=LAYERS_FROM),
        Column(least=12, cut="middle", grows=True),
        Column(least=4, align="right", from_width=ALL_FROM),
    )

    _loss: Loss | None = None

    def show_loss(self, loss: Loss | None) -> None:
        """Report ``loss`` in the title, with the command that resumes the task. None clears the title."""
        if loss != self._loss:
            self._loss = loss
            self._retitle()

    def title_text(self, title: str) -> str:
        if self._loss is None:
            return title
        said = labels.lost_text(self._loss.since, self._loss.resume, texts_of(self))
        return f"{title} · {labels.STATUS_MARKS['lost'].text} {sanitize(said)}"

    @property
    def tab_text(self) -> str:
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def item_key(self, item: MemberItem) -> Hashable:
        return item.member.id

    def cells(self, item: MemberItem) -> Sequence[Line]:
        member = item.member
        colour = "dim" if member.ended is not None else agent_class(member.id)
        # In a narrow pane, the role is shown only if the id does not contain it.
        has_role = self.content_area.width >= ALL_FROM or member.role not in member.id
        return (
            [Span(" "), self._mark(item)],
            [Span(item.guides, "number"), Span(sanitize(member.id), colour)],
            [Span(sanitize(member.role) if has_role else "", "dim")],
            [Span(member.layer, "dim")],
            self._doing(item),
            [Span(self._age(item), "dim")],
        )

    def _mark(self, item: MemberItem) -> Span:
        if item.member.ended is not None:
            return labels.ENDED_MARK
        if item.view is None or _rests(item.view):
            return labels.STATUS_MARKS["idle"]
        return labels.STATUS_MARKS[item.view.status(now_of(self))]

    def _doing(self, item: MemberItem) -> Line:
        """Return the activity of an agent: a sentence, or a tool and its path."""
        texts, now, view = texts_of(self), now_of(self), item.view
        if item.member.ended is not None:
            return sentence(labels.end_reason(item.member.ended, item.member.id, texts), "dim")
        if view is None:
            return sentence(texts("agents.nothing_yet"), "dim")
        said = labels.agent_status_text(view, now, texts, item.resume)
        if said:
            return sentence(sanitize(said), "" if view.status(now) == "waiting" else "dim")
        if item.command is not None:
            return sentence(f"$ {sanitize(item.command.begun.message)}")
        if view.last is None or _rests(view):
            return sentence(texts("tasks.rests" if _rests(view) else "agents.nothing_yet"), "dim")
        tool, path = labels.activity_spans(view.last, texts)
        return [tool._replace(text=f"{tool.text} "), path]

    def _age(self, item: MemberItem) -> str:
        view = item.view
        return format_age(view.last_heard, now_of(self)) if view is not None and view.last_heard else ""

    def item_text(self, item: MemberItem) -> str:
        return f"{item.member.id} {item.member.role} {item.member.layer}"

    def copy_text(self, item: MemberItem) -> str:
        return item.member.id


class MessageList(ItemList[MessageView]):
    """Messages, newest first: sender, receiver, delivery mark and text."""

    WRAPS = "always"
    GROWS_AT_TOP = True
    ITEMS_CHANGE = True
    COLUMNS: ClassVar = (
        Column(least=9),
        Column(least=6, most=20),
        Column(least=1),
        Column(least=6, most=20),
        Column(least=2),
        Column(least=20, grows=True),
    )

    def item_key(self, item: MessageView) -> Hashable:
        return item.row.seq

    def cells(self, item: MessageView) -> Sequence[Line]:
        is_new = item.receiver == USER and item.read is None
        return (
            [Span(f" {local_clock(item.row.time)}", "dim")],
            [self._named(item.sender)],
            [Span("→", "dim")],
            [self._named(item.receiver)],
            [labels.message_mark(item)],
            [Span(sanitize(item.row.message), "strong" if is_new else "")],
        )

    def _named(self, actor: str) -> Span:
        """Return the name of a sender or receiver. The people at the dashboard are "you"."""
        if actor == USER:
            return Span(texts_of(self)("tasks.you"), "human")
        return Span(sanitize(actor), agent_class(actor))

    def copy_text(self, item: MessageView) -> str:
        return item.row.message


class TaskFileList(ItemList[Row]):
    """The files of a task by path, with the last author of each."""

    COLUMNS: ClassVar = (
        Column(least=12, cut="middle", grows=True),
        Column(least=3, align="right"),
        # Optional: the preview's title also names the author.
        Column(least=6, most=20, optional=True),
        Column(least=4, align="right"),
    )

    def item_key(self, item: Row) -> Hashable:
        return item.path

    def cells(self, item: Row) -> Sequence[Line]:
        return (
            [Span(" "), Span(sanitize(labels.path_of(item)))],
            [Span(f"v{item.version}", "ok")],
            [Span(sanitize(item.actor), agent_class(item.actor))],
            [Span(self.age_of(item), "dim")],
        )

    def copy_text(self, item: Row) -> str:
        return labels.path_of(item)


class TaskCommandList(ItemList[CommandView]):
    """Commands, newest first: the text, the actor, the outcome and the duration of each."""

    WRAPS = "always"
    GROWS_AT_TOP = True
    ITEMS_CHANGE = True
    COLUMNS: ClassVar = (
        Column(least=20, grows=True),
        # Optional: the text of the command distinguishes commands, not the actor.
        Column(least=6, most=20, optional=True),
        Column(least=6, align="right"),
        Column(least=5, align="right"),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._sandbox = ""

    def show_sandbox(self, text: str) -> None:
        """Show ``text``, the sandbox of commands, in the title."""
        self._sandbox = text
        self._retitle()

    def title_text(self, title: str) -> str:
        return f"{title} · {self._sandbox}" if self._sandbox else title

    @property
    def tab_text(self) -> str:
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def item_key(self, item: CommandView) -> Hashable:
        return item.path

    def cells(self, item: CommandView) -> Sequence[Line]:
        outcome = command_outcome(item, texts_of(self))
        return (
            [Span(" $ ", "dim"), Span(sanitize(item.begun.message))],
            [Span(sanitize(item.begun.actor), agent_class(item.begun.actor))],
            [outcome._replace(text=pad(outcome.text, ENDED_WIDTH, "right"))],
            [Span(self._time(item).rjust(TIME_WIDTH), "dim")],
        )

    def _time(self, item: CommandView) -> str:
        return (
            format_duration(item.begun.time, item.ended.time)
            if item.ended
            else format_age(item.begun.time, now_of(self))
        )

    def copy_text(self, item: CommandView) -> str:
        return item.begun.message


def command_outcome(command: CommandView, texts: Catalogue) -> Span:
    """Return the status of ``command``: running, lost, or its outcome."""
    if command.ended is None and command.is_lost:
        lost = labels.STATUS_MARKS["lost"]
        return lost._replace(text=f"{lost.text} {texts('tasks.lost')}")
    return labels.outcome_span(command.ended or command.begun, texts)


def _rests(view: AgentView) -> bool:
    """Return whether the agent is idle until it receives a message."""
    return view.session is not None and view.session.status == "done"
