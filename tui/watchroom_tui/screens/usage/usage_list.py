"""Lists of the usage of each agent, model or task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from watchroom.features.budgets.rows import UsageTotal

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.labels import cost_text, format_count
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

TOKENS_FROM: Final = 36
"""Minimum number of columns to show tokens beside the cost."""


class UsageEntry(NamedTuple):
    """The usage of an agent, a model or a task.

    - ``name``: the id of the agent or task, or the model's name.
    - ``title``: the text to show. Several tasks can have the same title.
    """

    name: str
    used: UsageTotal
    title: str


class UsageList(ItemList[UsageEntry]):
    """Names with their cost and tokens, highest cost first."""

    COLUMNS: ClassVar = (
        Column(least=1),
        Column(least=16, cut="middle", grows=True),
        Column(least=5, align="right"),
        Column(least=5, align="right", from_width=TOKENS_FROM),
        Column(least=5, align="right", from_width=TOKENS_FROM),
        Column(least=5, align="right", from_width=56),
    )

    ARE_AGENTS = False
    """Whether the names are agents' ids."""

    def show_usage(self, parts: Mapping[str, UsageTotal], titles: Mapping[str, str] | None = None) -> None:
        """Show ``parts``, a mapping from names to usage. ``titles``: the titles of names, default: the
        names."""
        titles = titles or {}
        entries = [UsageEntry(name, used, titles.get(name, name)) for name, used in parts.items()]
        self.show(
            sorted(entries, key=lambda each: (-each.used.cost, -each.used.tokens, each.title, each.name))
        )

    def item_key(self, item: UsageEntry) -> Hashable:
        return item.name

    def cells(self, item: UsageEntry) -> Sequence[Line]:
        texts, used = texts_of(self), item.used
        name = sanitize(item.title) or texts("usage.unnamed")
        cached = used.cache_read + used.cache_write
        return (
            [Span("")],
            [Span(name, agent_class(item.name) if self.ARE_AGENTS else "")],
            [Span(cost_text(used), "ok" if used.cost else "dim")],
            [Span(texts("usage.input", count=format_count(used.input)), "")],
            [Span(texts("usage.output", count=format_count(used.output)), "")],
            [Span(texts("usage.cached", count=format_count(cached)) if cached else "", "dim")],
        )

    def item_text(self, item: UsageEntry) -> str:
        return item.title

    def copy_text(self, item: UsageEntry) -> str:
        return item.title


class AgentUsageList(UsageList):
    """The usage of each agent."""

    ARE_AGENTS = True
