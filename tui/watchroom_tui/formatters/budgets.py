"""The use of a budget, as a bar and in words."""

from __future__ import annotations

from typing import Final

from watchroom.features.budgets.rules import BudgetUse, format_amount
from watchroom.texts import Catalogue

from watchroom_tui.formatters.styled_text import Span

_FULL, _EMPTY = "▰", "▱"
_CELLS: Final = 5


def budget_bar(use: BudgetUse) -> Span:
    """Return the use as a bar. Only an unused budget has an empty bar, and only a reached budget has a full
    bar."""
    filled = min(_CELLS, int(use.share * _CELLS + 0.5))
    if not use.is_reached:
        filled = min(filled, _CELLS - 1)
    if use.used:
        filled = max(filled, 1)
    return Span(_FULL * filled + _EMPTY * (_CELLS - filled), budget_style(use))


def budget_style(use: BudgetUse) -> str:
    """Return the style for the use of a budget, which is a warning from the warning threshold on."""
    return "error" if use.is_reached else "warning" if use.is_near else "dim"


def budget_amount(use: BudgetUse, texts: Catalogue, words: Catalogue) -> str:
    """Return the used and the total amount. ``words`` is the catalogue for amounts. A ``≥`` before a cost
    means that the price of some tokens is unknown."""
    measure = use.budget.measure
    used = format_amount(words, measure, use.used)
    shown = f"≥ {used}" if measure == "cost" and use.unpriced else used
    return texts("usage.budget.of", used=shown, most=format_amount(words, measure, use.budget.most))


def budget_percent(use: BudgetUse) -> str:
    """Return the use in per cent, rounded down. ``<1 %`` means that the use is above zero, as in
    `budget_bar`."""
    percent = min(int(use.share * 100), 999)
    return "<1 %" if use.used and not percent else f"{percent} %"


def budget_next(use: BudgetUse, texts: Catalogue) -> str:
    """Return whether calls continue, will be held soon, or are held."""
    name = "held" if use.is_reached else "near" if use.is_near else "free"
    return texts(f"usage.budget.{name}")
