"""The lists of the requests screen: requests, grants and options."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

from textual.message import Message
from watchroom.features.policy.grants import describe_grant
from watchroom.features.policy.reads import GrantState
from watchroom.features.sessions.view import RequestView
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import catalogue

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column, format_age
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList


class RequestList(ItemList[RequestView]):
    """Open requests in the order of needs, then expired requests, then ended requests."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=8, most=24),
        Column(least=7, most=12),
        Column(least=8, grows=True),
        Column(least=5, align="right"),
    )

    def item_key(self, item: RequestView) -> Hashable:
        return item.row.path

    def _time(self, item: RequestView) -> str:
        """Return the time left of an open request that expires, else the time since it ended or was made."""
        now = now_of(self)
        if item.ended is not None:
            return format_age(item.ended.time, now)
        if item.expires is None or item.expires < now:
            return format_age(item.row.time, now)
        return texts_of(self)("request.left", time=format_age(now, item.expires))

    def cells(self, item: RequestView) -> Sequence[Line]:
        texts = texts_of(self)
        is_open = item.ended is None and not item.has_expired(now_of(self))
        kind = texts(f"request.kind.{item.kind}") if is_open else labels.request_outcome(item, texts)
        return (
            [Span(" "), labels.request_mark(item, is_open=is_open)],
            [Span(sanitize(item.agent), agent_class(item.agent))],
            [Span(kind, "strong" if is_open else "dim")],
            [Span(labels.request_text(item, texts), "" if is_open else "dim")],
            [Span(self._time(item), "warning" if is_open and item.expires else "dim")],
        )

    def copy_text(self, item: RequestView) -> str:
        return str(item.id)


class GrantList(ItemList[GrantState]):
    """The grants that still allow calls: what each covers, who gave it, and what is left of it."""

    COLUMNS: ClassVar = (
        Column(least=20, grows=True),
        Column(least=4, most=16),
        Column(least=8),
        Column(least=6),
        Column(least=8, most=40),
    )
    WRAPS = "always"

    BINDINGS = bindings("grants")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("list", "grants")

    class Revoked(Message):
        """The person revokes a grant."""

        def __init__(self, state: GrantState) -> None:
            super().__init__()
            self.state = state

    def item_key(self, item: GrantState) -> Hashable:
        return item.row.seq

    def cells(self, item: GrantState) -> Sequence[Line]:
        texts, now, expires = texts_of(self), now_of(self), item.grant.expires
        covers = describe_grant(item.grant, catalogue(dashboard_of(self).language))
        end = texts("grant.session_end")
        if expires is not None:
            end = texts("request.left", time=format_age(now, expires))
        last = item.last_use
        used = f"{format_age(last.time, now)} {last.message}" if last is not None else "-"
        return (
            [Span(sanitize(covers))],
            [Span(sanitize(item.row.actor.removeprefix(HUMAN_PREFIX)), "dim")],
            [Span(texts("grant.left", count=item.uses_left), "dim")],
            [Span(end, "dim")],
            [Span(sanitize(used), "dim")],
        )

    def copy_text(self, item: GrantState) -> str:
        return str(item.row.seq)

    def action_revoke_grant(self) -> None:
        if self.item is not None:
            self.post_message(self.Revoked(self.item))


class RequestOption(NamedTuple):
    """An option or a call to tick. ``value``: the value of the option, or the id of the call."""

    label: str
    value: str
    is_ticked: bool
    is_single: bool
    """Whether a tick on this option clears all other ticks."""


class ChoiceList(ItemList[RequestOption]):
    """The options or calls of a request. The space key ticks them."""

    WRAPS = "never"

    BINDINGS = bindings("choices")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("list", "choices")

    _question = ""

    def offer(self, choices: Sequence[RequestOption], question: str) -> None:
        """Show ``choices``. ``question``: the text for the title, already sanitized."""
        self._question = question
        self.show(choices)
        self._retitle()

    def title_text(self, title: str) -> str:
        return f"{title} · {self._question}" if self._question else title

    @property
    def tab_text(self) -> str:
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def item_key(self, item: RequestOption) -> Hashable:
        return item.value

    def cells(self, item: RequestOption) -> Sequence[Line]:
        marks = ("◉", "○") if item.is_single else ("☑", "☐")
        mark = Span(marks[0], "ok") if item.is_ticked else Span(marks[1], "dim")
        label = Span(" " + sanitize(item.label), "strong" if item.is_ticked else "")
        return ([Span(" "), mark, label, Span("")],)

    def action_tick(self) -> None:
        item = self.item
        if item is None:
            return
        self.show([self._ticked(each, item) for each in self.items])

    @staticmethod
    def _ticked(each: RequestOption, chosen: RequestOption) -> RequestOption:
        if each.value == chosen.value:
            return each._replace(is_ticked=chosen.is_single or not each.is_ticked)
        return each._replace(is_ticked=False) if chosen.is_single else each

    @property
    def ticked(self) -> Sequence[str]:
        """The values of the ticked options."""
        return [item.value for item in self.items if item.is_ticked]
