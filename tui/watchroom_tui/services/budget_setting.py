"""Sets a budget that a person enters, from any screen."""

from __future__ import annotations

from watchroom.features.budgets.rules import format_amount
from watchroom.model import SET_BUDGET
from watchroom.texts import catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.budget import BudgetDialog, BudgetOwner, find_measure
from watchroom_tui.presentation.sanitize import sanitize


async def set_budget(app: Dashboard, owner: BudgetOwner | None = None) -> None:
    """Ask for a budget, and set it. Await it in a worker. ``owner``: selected at first, default: the team."""
    if not app.can_act:
        app.explain_read_only()
        return
    first = owner or BudgetOwner("team")
    setting = await app.push_screen_wait(BudgetDialog(app.model, first, find_measure(app.model, first)))
    if setting is None:
        return
    (scope, name), measure, most = setting
    given = {"scope": scope, "name": name or None, "measure": measure, "most": most}
    answer = await app.act(SET_BUDGET, given)
    if answer is None:
        return
    if not answer["success"]:
        app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
        return
    titles = {task.id: task.row.message for task in app.model.tasks}
    whose = sanitize(titles.get(name, name)) if name else app.texts(f"budget.{scope}")
    if most is None:
        app.show_message(app.texts("budget.removed", owner=whose))
    else:
        amount = format_amount(catalogue(app.language), measure, most)
        app.show_message(app.texts("budget.done", owner=whose, amount=amount))
