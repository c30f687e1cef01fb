"""How much of a budget is used, as a bar and in words."""

from __future__ import annotations

from typing import Final

from watchroom.features.budgets.rules import BudgetUse, format_amount
from watchroom.texts import Catalogue

from watchroom_tui.formatters.styled_text import Span

_FULL, _EMPTY = "▰", "▱"
_CELLS: Final = 5


def budget_bar(use: BudgetUse) -> Span:
    """The share of ``use`` as a bar; what there is of it is seen, and only what is used up is full."""
    filled = min(_CELLS, int(use.share * _CELLS + 0.5))
    if not use.is_reached:
        filled = min(filled, _CELLS - 1)
    if use.used:
        filled = max(filled, 1)
    return Span(_FULL * filled + _EMPTY * (_CELLS - filled), budget_style(use))


def budget_style(use: BudgetUse) -> str:
    """The style of what is said of ``use``: a warning from where people are warned on."""
    return "error" if use.is_reached else "warning" if use.is_near else "dim"


def budget_amount(use: BudgetUse, texts: Catalogue, words: Catalogue) -> str:
    """How much is used of how much; ``words`` are those in which amounts are said. Of money, ``≥`` says that
    some tokens have no known price."""
    measure = use.budget.measure
    used = format_amount(words, measure, use.used)
    shown = f"≥ {used}" if measure == "cost" and use.unpriced else used
    return texts("usage.budget.of", used=shown, most=format_amount(words, measure, use.budget.most))


def budget_percent(use: BudgetUse) -> str:
    """The share of ``use``, never rounded up to what it has not reached."""
    return f"{min(int(use.share * 100), 999)} %"


def budget_next(use: BudgetUse, texts: Catalogue) -> str:
    """What comes next by ``use``."""
    name = "held" if use.is_reached else "near" if use.is_near else "free"
    return texts(f"usage.budget.{name}")
