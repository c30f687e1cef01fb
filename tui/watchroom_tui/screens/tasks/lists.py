"""The lists of the tasks screen: tasks, the tree of agents, messages, files, commands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import TypeVar

from rich.cells import cell_len
from watchroom.model import USER, Row
from watchroom.projections import AgentView, CommandView, MessageView
from watchroom.texts import Catalogue

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit, fit_path, format_age, format_duration
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span, width_of
from watchroom_tui.formatters.task_tree import Loss, MemberItem, TaskItem
from watchroom_tui.localization import now_of, texts_of
from watchroom_tui.sanitize import sanitize
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList

LAYERS_FROM = 54
ALL_FROM = 66
"""From so many columns on, the tree names layers; and the roles that ids say already, and how long ago each
agent did what it did."""


T = TypeVar("T")


class _NamingList(LineList[T]):
    """A list whose column of names is as wide as the longest of them, up to a share of the width."""

    _measured: tuple[Sequence[T], int] = ((), 0)

    @abstractmethod
    def names_of(self, item: T) -> Sequence[str]:
        """The names that stand in that column."""

    def name_width(self, width: int, share: int) -> int:
        return max(6, min(self.longest_name, width // share))

    @property
    def longest_name(self) -> int:
        if self._measured[0] is not self.items:
            names = (cell_len(name) for item in self.items for name in self.names_of(item))
            self._measured = (self.items, max(names, default=0))
        return self._measured[1]


class TaskList(LineList[TaskItem]):
    """Tasks, newest first: how each stands, how many work on it, how old it is."""

    def item_key(self, item: TaskItem) -> Hashable:
        return item.task.id

    def render_key(self, item: TaskItem) -> Hashable:
        task = item.task
        return (task.id, task.status, item.at_work, item.waiting, item.loss, self.age_of(task.row))

    def line(self, item: TaskItem, width: int) -> Line:
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
        style = "dim" if task.ended is not None else ""
        return [
            Span(" "),
            mark,
            Span(" " + fit(sanitize(task.row.message), max(8, width - 22)), style),
            Span(fit(said, 11, "right"), "dim"),
            Span(fit(format_age(task.row.time, now_of(self)), 7, "right"), "dim"),
        ]

    def item_text(self, item: TaskItem) -> str:
        return f"{item.task.row.message} {item.task.folder} {item.task.status}"

    def copy_text(self, item: TaskItem) -> str:
        return item.task.folder or item.task.id


class MemberTree(_NamingList[MemberItem]):
    """The agents of a task: who made whom, how each is, and what it does just now."""

    _roles: tuple[Sequence[MemberItem], tuple[int, int]] = ((), (0, 0))
    _loss: Loss | None = None

    def show_loss(self, loss: Loss | None) -> None:
        """Say in the title that nobody is seen to run the task of these agents, and what resumes it."""
        if loss != self._loss:
            self._loss = loss
            self._retitle()

    def title_text(self, title: str) -> str:
        if self._loss is None:
            return title
        said = labels.lost_text(self._loss.since, self._loss.resume, texts_of(self))
        return f"{title} · {labels.STATUS_MARKS['lost'].text} {sanitize(said)}"

    def item_key(self, item: MemberItem) -> Hashable:
        return item.member.id

    def render_key(self, item: MemberItem) -> Hashable:
        look = (item.member, item.guides, self._mark(item), self._doing(item), self._age(item))
        return (*look, self.longest_name, self._longest_roles())

    def line(self, item: MemberItem, width: int) -> Line:
        member = item.member
        is_ended = member.ended is not None
        name_width = self.name_width(width, 2)
        name = fit(sanitize(member.id), max(1, name_width - len(item.guides)))
        spans = [
            Span(" "),
            self._mark(item),
            Span(f" {item.guides}", "number"),
            Span(name, "dim" if is_ended else agent_class(member.id)),
            Span(self._role(item, width), "dim"),
            Span(" " + fit(member.layer, 6) if width >= LAYERS_FROM else "", "dim"),
            Span(" "),
        ]
        age_width = 6 if width >= ALL_FROM else 0
        rest = max(0, width - width_of(spans) - age_width)
        doing = self._doing(item)
        shown = "".join(span.text for span in doing)
        if width_of(doing) > rest:
            doing = (Span(fit(shown, rest), doing[-1].style),) if len(doing) == 1 else self._cut(doing, rest)
        spans += [*doing, Span(" " * max(0, rest - width_of(doing)))]
        return [*spans, Span(fit(self._age(item), age_width, "right"), "dim")]

    def names_of(self, item: MemberItem) -> Sequence[str]:
        return (item.guides + item.member.id.ljust(4),)

    def _longest_roles(self) -> tuple[int, int]:
        """How wide the widest role is, and the widest that no id says."""
        if self._roles[0] is not self.items:
            roles = [(cell_len(sanitize(each.member.role)), _says_role(each)) for each in self.items]
            every = max((width for width, _ in roles), default=0)
            unsaid = max((width for width, is_said in roles if not is_said), default=0)
            self._roles = (self.items, (min(12, every), min(12, unsaid)))
        return self._roles[1]

    def _role(self, item: MemberItem, width: int) -> str:
        """The role in its column; where there is little space, only if the id does not say it."""
        every, unsaid = self._longest_roles()
        has_space = width >= ALL_FROM
        column = every if has_space else unsaid
        role = sanitize(item.member.role) if has_space or not _says_role(item) else ""
        return " " + fit(role, column) if column else ""

    @staticmethod
    def _cut(doing: tuple[Span, ...], rest: int) -> tuple[Span, ...]:
        """What was done stays, and to what is cut in its middle."""
        tool, path = doing
        tool_width = min(width_of([tool]), rest)
        return Span(fit(tool.text, tool_width), tool.style), Span(
            fit_path(path.text, rest - tool_width), path.style
        )

    def _mark(self, item: MemberItem) -> Span:
        if item.member.ended is not None:
            return labels.ENDED_MARK
        if item.view is None or _rests(item.view):
            return labels.STATUS_MARKS["idle"]
        return labels.STATUS_MARKS[item.view.status(now_of(self))]

    def _doing(self, item: MemberItem) -> tuple[Span, ...]:
        """What it does, in one piece, or in two: the tool, and to what."""
        texts, now, view = texts_of(self), now_of(self), item.view
        if item.member.ended is not None:
            return (Span(labels.end_reason(item.member.ended, item.member.id, texts), "dim"),)
        if view is None:
            return (Span(texts("agents.nothing_yet"), "dim"),)
        said = labels.agent_status_text(view, now, texts, item.resume)
        if said:
            return (Span(sanitize(said), "" if view.status(now) == "waiting" else "dim"),)
        if item.command is not None:
            return Span("$ ", "dim"), Span(sanitize(item.command.begun.message))
        if view.last is None or _rests(view):
            return (Span(texts("tasks.rests" if _rests(view) else "agents.nothing_yet"), "dim"),)
        tool, path = labels.activity_spans(view.last, texts)
        return tool._replace(text=f"{tool.text} "), path

    def _age(self, item: MemberItem) -> str:
        view, now = item.view, now_of(self)
        return format_age(view.last_heard, now) if view is not None and view.last_heard else ""

    def item_text(self, item: MemberItem) -> str:
        return f"{item.member.id} {item.member.role} {item.member.layer}"

    def copy_text(self, item: MemberItem) -> str:
        return item.member.id


def _says_role(item: MemberItem) -> bool:
    """Whether the agent's id says its role."""
    return item.member.role in item.member.id


def _named(actor: str, width: int, you: str) -> Span:
    """Who writes or hears; the people who watch are ``you``."""
    if actor == USER:
        return Span(fit(you, width), "human")
    return Span(fit(sanitize(actor), width), agent_class(actor))


class MessageList(_NamingList[MessageView]):
    """Messages, newest first: who wrote to whom, and how far it got."""

    GROWS_AT_TOP = True
    ITEMS_CHANGE = True

    def item_key(self, item: MessageView) -> Hashable:
        return item.row.seq

    def render_key(self, item: MessageView) -> Hashable:
        return (item.row.seq, labels.message_mark(item), self.longest_name)

    def names_of(self, item: MessageView) -> Sequence[str]:
        return item.sender, texts_of(self)("tasks.you") if item.receiver == USER else item.receiver

    def line(self, item: MessageView, width: int) -> Line:
        you = texts_of(self)("tasks.you")
        name_width = self.name_width(width, 5)
        is_new = item.receiver == USER and item.read is None
        return [
            Span(f" {local_clock(item.row.time)} ", "dim"),
            _named(item.sender, name_width, you),
            Span(" → ", "dim"),
            _named(item.receiver, name_width, you),
            Span(" "),
            labels.message_mark(item)._replace(text=fit(labels.message_mark(item).text, 2)),
            Span(
                " " + fit(sanitize(item.row.message), width - 2 * name_width - 18), "strong" if is_new else ""
            ),
        ]

    def copy_text(self, item: MessageView) -> str:
        return item.row.message


class TaskFileList(_NamingList[Row]):
    """The files of a task by path, and who changed each last."""

    def item_key(self, item: Row) -> Hashable:
        return item.path

    def render_key(self, item: Row) -> Hashable:
        return (item.seq, self.age_of(item), self.longest_name)

    def names_of(self, item: Row) -> Sequence[str]:
        return (item.actor,)

    def line(self, item: Row, width: int) -> Line:
        who_width = self.name_width(width, 4)
        rest = max(8, width - who_width - 16)
        return [
            Span(" " + fit_path(sanitize(labels.path_of(item)), rest)),
            Span(fit(f"v{item.version}", 7, "right"), "ok"),
            Span(" " + fit(sanitize(item.actor), who_width), agent_class(item.actor)),
            Span(fit(format_age(item.time, now_of(self)), 6, "right"), "dim"),
        ]

    def copy_text(self, item: Row) -> str:
        return labels.path_of(item)


class CommandList(_NamingList[CommandView]):
    """Commands, newest first: who ran each, how it ended, how long it took."""

    GROWS_AT_TOP = True
    ITEMS_CHANGE = True

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._sandbox = ""

    def show_sandbox(self, text: str) -> None:
        """Show in the title which sandbox commands run in."""
        self._sandbox = text
        self._retitle()

    def title_text(self, title: str) -> str:
        return f"{title} · {self._sandbox}" if self._sandbox else title

    @property
    def tab_text(self) -> str:
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def item_key(self, item: CommandView) -> Hashable:
        return item.path

    def render_key(self, item: CommandView) -> Hashable:
        return (item.path, item.ended, item.is_lost, self._time(item), self.longest_name)

    def names_of(self, item: CommandView) -> Sequence[str]:
        return (item.begun.actor,)

    def line(self, item: CommandView, width: int) -> Line:
        outcome = command_outcome(item, texts_of(self))
        who_width = self.name_width(width, 5)
        rest = max(8, width - who_width - 21)
        return [
            Span(" $ ", "dim"),
            Span(fit(sanitize(item.begun.message), rest)),
            Span(" " + fit(sanitize(item.begun.actor), who_width), agent_class(item.begun.actor)),
            Span(fit(outcome.text, 10, "right"), outcome.style),
            Span(fit(self._time(item), 7, "right"), "dim"),
        ]

    def _time(self, item: CommandView) -> str:
        return (
            format_duration(item.begun.time, item.ended.time)
            if item.ended
            else format_age(item.begun.time, now_of(self))
        )

    def copy_text(self, item: CommandView) -> str:
        return item.begun.message


def command_outcome(command: CommandView, texts: Catalogue) -> Span:
    """That ``command`` runs, is not seen alive, or how it ended."""
    if command.ended is None and command.is_lost:
        lost = labels.STATUS_MARKS["lost"]
        return lost._replace(text=f"{lost.text} {texts('tasks.lost')}")
    return labels.outcome_span(command.ended or command.begun, texts)


def _rests(view: AgentView) -> bool:
    """Whether it has nothing to do until somebody writes to it."""
    return view.session is not None and view.session.status == "done"
