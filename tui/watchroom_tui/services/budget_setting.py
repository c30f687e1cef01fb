"""Have the person set a budget, from any screen."""

from __future__ import annotations

from typing import Final

from watchroom.model import SET_BUDGET, Json

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.person_calls import PersonCall

_DRAFT: Final = "budget"
_NONE: Final = "none"


async def set_budget(app: Dashboard) -> None:
    """Ask for a budget and set it; what was entered stays for the next time where it is refused. Await it in
    a worker."""
    if not app.can_act:
        app.explain_read_only()
        return
    texts = app.texts
    draft = app.drafts.find(TextDraft, _DRAFT) or TextDraft(_DRAFT, texts("budget.title"))
    text = await enter_text(app, draft, texts("budget.title"), texts("budget.hint"))
    if text is None:
        return
    call = parse_budget(text)
    if call is None:
        app.show_message(texts("budget.unclear", given=sanitize(text.strip())), "warning")
        return
    answer = await app.act(call.tool, call.arguments)
    if answer is None:
        return
    if answer["success"]:
        app.drafts.drop(TextDraft, _DRAFT)
        app.show_message(texts("budget.done", budget=sanitize(text.strip())))
    else:
        app.show_message(f"{answer['message']} {answer['suggestion']}", "error")


def parse_budget(text: str) -> PersonCall | None:
    """The call that sets the budget in ``text``: of what, perhaps its name, what is counted, and how much,
    ``none`` to take it away. None where it says something else."""
    words = text.split()
    if len(words) not in (3, 4):
        return None
    scope, *names, measure, amount = words
    most: Json = None
    if amount != _NONE:
        try:
            most = float(amount.lstrip("$").replace(",", "").replace("_", ""))
        except ValueError:
            return None
    return PersonCall(
        SET_BUDGET,
        {"scope": scope, "name": names[0] if names else None, "measure": measure, "most": most},
    )
