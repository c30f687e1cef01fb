"""Lists of rows, agents, needs, handoffs and files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from rich.cells import cell_len
from watchroom.model import Row
from watchroom.projections import AgentView, Delivery, Model, Need, SharedFile, TaskView
from watchroom.projections.model import bucket_of, sparkline_counts

from watchroom_tui import describe
from watchroom_tui.columns import fit, fit_path, format_age, sparkline
from watchroom_tui.local_time import local_clock
from watchroom_tui.localization import now_of, texts_of
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.task_tree import ended_agents
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList

SHORT_OUTCOME = 9


class RowList(LineList[Row]):
    """Rows of the journal, newest first."""

    GROWS_AT_TOP = True
    SHOWS_ACTOR = True

    def item_key(self, item: Row) -> Hashable:
        return item.seq

    def render_key(self, item: Row) -> Hashable:
        return item.seq

    def line(self, item: Row, width: int) -> Line:
        outcome = describe.outcome_span(item, texts_of(self))
        actor_width = 14 if self.SHOWS_ACTOR else 0
        tool_width = 17
        path_width = max(12, min(48, (width - 10 - actor_width - tool_width) * 2 // 5))
        spans = [
            Span(f"{local_clock(item.time)} ", "dim"),
            Span(
                fit(sanitize(item.actor), actor_width - 1) + " " * bool(actor_width), agent_class(item.actor)
            ),
            Span(
                fit(describe.tool_label(item, texts_of(self)), tool_width) + " ",
                "dim" if item.version is None and item.outcome == "ok" else "",
            ),
            Span(fit_path(describe.shown_path(item, texts_of(self)), path_width) + "  "),
            # Short outcomes stand in a column, so that the messages after them line up.
            Span(outcome.text.ljust(SHORT_OUTCOME), outcome.style),
        ]
        said = describe.row_message(item)
        if said:
            spans.append(Span("  " + said, "dim"))
        return spans

    def item_text(self, item: Row) -> str:
        return " ".join((item.actor, item.tool, item.path, item.outcome, item.error, item.message))

    def copy_text(self, item: Row) -> str:
        return item.path


class OwnRowList(RowList):
    """The rows of one agent."""

    SHOWS_ACTOR = False


class AgentList(LineList[AgentView]):
    """Agents with status, layer, last action and a sparkline of the last two minutes; those that have ended
    are dimmed."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._tasks: Sequence[TaskView] = ()
        self._ended: Mapping[str, Row] = {}

    def show_team(self, model: Model) -> None:
        """Show the agents of the model."""
        if model.tasks is not self._tasks:
            self._tasks, self._ended = model.tasks, ended_agents(model.tasks)
        self.show(model.agents)

    def item_key(self, item: AgentView) -> Hashable:
        return item.agent.id

    def render_key(self, item: AgentView) -> Hashable:
        now = now_of(self)
        status = item.status(now)
        says = describe.agent_status_text(item, now, texts_of(self))
        ended = self.age_of(self._ended.get(item.agent.id))
        return (item.agent, item.rows, status, self.age_of(item.last), bucket_of(now), says, ended)

    def line(self, item: AgentView, width: int) -> Line:
        now = now_of(self)
        last = item.last
        name_width = min(18, max(11, width // 4))
        spark_width = min(12, max(3, width // 9))
        layer_width = 7 if width >= 70 else 0
        rest = max(0, width - name_width - layer_width - spark_width - 12)
        colour = "dim" if item.agent.id in self._ended else agent_class(item.agent.id)
        spans = [
            Span(" "),
            describe.ENDED_MARK if item.agent.id in self._ended else describe.STATUS_MARKS[item.status(now)],
            Span(" " + fit(sanitize(item.agent.id), name_width) + " ", colour),
            Span(fit(item.agent.layer, layer_width), "dim"),
        ]
        says = describe.agent_status_text(item, now, texts_of(self))
        ended = self._ended.get(item.agent.id)
        if ended is not None:
            spans.append(Span(fit(texts_of(self)("agents.ended"), rest), "dim"))
            spans.append(Span(fit(format_age(ended.time, now), 6, "right"), "dim"))
        elif says:
            spans.append(Span(fit(sanitize(says), rest), "" if item.status(now) == "waiting" else "dim"))
            spans.append(Span(fit(format_age(item.last_heard, now), 6, "right"), "dim"))
        elif last is None:
            spans.append(Span(fit(texts_of(self)("agents.nothing_yet"), rest + 6), "dim"))
        else:
            tool, path = describe.activity_spans(last, texts_of(self))
            tool_width = min(cell_len(tool.text), max(6, rest - 12))
            spans.append(Span(fit(tool.text, tool_width) + " ", tool.style))
            spans.append(Span(fit_path(path.text, max(0, rest - tool_width - 1))))
            spans.append(Span(fit(format_age(last.time, now), 6, "right"), "dim"))
        spans.append(Span(" " + sparkline(sparkline_counts(item.activity, now), spark_width), colour))
        return spans

    def copy_text(self, item: AgentView) -> str:
        return item.agent.id


class NeedList(LineList[Need]):
    """What waits for a person, the most urgent first."""

    def item_key(self, item: Need) -> Hashable:
        return (item.kind, item.key)

    def render_key(self, item: Need) -> Hashable:
        return (item.kind, item.key, item.times, item.row.seq, self.age_of(item.row))

    def line(self, item: Need, width: int) -> Line:
        texts = texts_of(self)
        kind = describe.need_kind(item, texts)
        if item.kind in ("request", "message"):
            times = f"×{item.times} " if item.times > 1 else ""
            text_width = max(10, width - 31)
            return [
                Span(" "),
                describe.NEED_MARKS[item.kind],
                Span(" " + fit(kind, 10), "strong"),
                Span(fit(sanitize(item.row.actor), 11) + " ", agent_class(item.row.actor)),
                Span(fit(times + describe.need_subject(item, texts), text_width)),
                Span(fit(format_age(item.row.time, now_of(self)), 6, "right"), "dim"),
            ]
        path_width = max(10, (width - 22) * 2 // 5)
        text_width = max(0, width - 20 - path_width)
        return [
            Span(" "),
            describe.NEED_MARKS[item.kind],
            Span(" " + fit(kind, 10), "strong"),
            Span(fit_path(sanitize(describe.need_subject(item, texts)), path_width) + " "),
            Span(fit(describe.need_text(item, texts), text_width), "dim"),
            Span(fit(format_age(item.row.time, now_of(self)), 6, "right"), "dim"),
        ]

    def copy_text(self, item: Need) -> str:
        return item.row.path


class DeliveryList(LineList[Delivery]):
    """Handoffs, newest first, with how far they got."""

    def item_key(self, item: Delivery) -> Hashable:
        return item.row.path

    def render_key(self, item: Delivery) -> Hashable:
        return (item.row.seq, item.read, item.acknowledged is None, self.age_of(item.row))

    def line(self, item: Delivery, width: int) -> Line:
        if item.acknowledged:
            mark = Span("✓", "ok")
        else:
            mark = Span("◐", "accent") if item.read else Span("✉", "warning")
        file_width = max(10, (width - 36) // 2)
        return [
            Span(" "),
            mark,
            Span(" " + fit(sanitize(item.sender), 11), agent_class(item.sender)),
            Span("→ ", "dim"),
            Span(fit(sanitize(item.receiver), 11), agent_class(item.receiver)),
            Span(" " + fit_path(sanitize(item.filename), file_width)),
            Span(fit(format_age(item.row.time, now_of(self)), 6, "right") + "  ", "dim"),
            Span(sanitize(item.row.message), "dim"),
        ]

    def copy_text(self, item: Delivery) -> str:
        return item.filename


class SharedFileList(LineList[SharedFile]):
    """Collaborative files by path."""

    def item_key(self, item: SharedFile) -> Hashable:
        return item.path

    def render_key(self, item: SharedFile) -> Hashable:
        return (item.head.seq, item.conflicts, self.age_of(item.head))

    def line(self, item: SharedFile, width: int) -> Line:
        rest = max(8, width - 31)
        return [
            Span(" " + fit_path(sanitize(item.path), rest)),
            Span(fit(f"v{item.head.version}", 6, "right"), "ok"),
            Span(fit(f"⚔{item.conflicts}" if item.conflicts else "", 4, "right"), "error"),
            Span(" " + fit(sanitize(item.head.actor), 12), agent_class(item.head.actor)),
            Span(fit(format_age(item.head.time, now_of(self)), 6, "right"), "dim"),
        ]

    def copy_text(self, item: SharedFile) -> str:
        return item.path


class FileList(LineList[Row]):
    """An agent's own files, by path."""

    def item_key(self, item: Row) -> Hashable:
        return item.path

    def render_key(self, item: Row) -> Hashable:
        return (item.seq, self.age_of(item))

    def line(self, item: Row, width: int) -> Line:
        filename = item.path.partition("/")[2]
        rest = max(8, width - 17)
        return [
            Span(" " + fit_path(sanitize(filename), rest)),
            Span(fit(f"v{item.version}", 6, "right"), "ok"),
            Span(fit(format_age(item.time, now_of(self)), 7, "right"), "dim"),
        ]

    def copy_text(self, item: Row) -> str:
        return item.path
