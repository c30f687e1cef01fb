"""Land a working tree: preview the changes of its branch, and merge the branch after a confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.features.trees.rows import LAND, Tree
from watchroom.model import Json

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import LinesConfirmDialog
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from watchroom.features.trees.landing import LandingPlan
    from watchroom.workspace import Workspace


class _Preview(NamedTuple):
    """Preview of a landing.

    - ``changed``: the paths that the landing changes.
    - ``check``: the program and arguments of the last check of a landing, empty without a check.
    """

    plan: LandingPlan
    changed: Sequence[str]
    check: Sequence[str]


async def land_tree(app: Dashboard, tree: Tree) -> None:
    """Preview the landing of ``tree``, and land ``tree`` if the person confirms. Await this in a worker."""
    texts = app.texts
    workspace = await app.wait_for_workspace()
    if workspace is None:
        return
    try:
        found = await asyncio.to_thread(_read, workspace, tree.id)
    except (WatchroomError, OSError) as error:
        said = str(error)
        if isinstance(error, WatchroomError):
            said = f"{error.message(app.language)} {error.suggestion(app.language)}"
        app.show_message(sanitize(said), "error")
        return
    if found is None:
        app.show_message(texts("cli.trees.unknown", given=branch_text(tree), known="-"), "error")
        return
    plan, name = found.plan, branch_text(tree)
    values = {"tree": name, "into": sanitize(plan.into)}
    if plan.is_up_to_date:
        app.show_message(texts("cli.land.up_to_date", **values))
        return
    title, conflicts = texts("land.title", **values), [*plan.conflicts, *plan.others]
    values["count"] = str(len(conflicts) or len(found.changed))
    question = texts("land.conflicts" if conflicts else "land.question", **values)
    if found.check and not conflicts:
        question += f" {texts('land.with_check', command=sanitize(found.check[-1]))}"
    if not await app.push_screen_wait(LinesConfirmDialog(title, question, _lines(found, conflicts))):
        return
    await _land(app, tree, found)


def _read(workspace: Workspace, tree: str) -> _Preview | None:
    found = workspace.trees.tree(tree)
    if found is None:
        return None
    plan = workspace.landings.plan(found)
    changed = sorted(found.git.list_committed(plan.before, plan.content)) if plan.content else []
    return _Preview(plan, changed, workspace.landings.find_check())


def _lines(found: _Preview, conflicts: Sequence[str]) -> list[Line]:
    if conflicts:
        return [[Span(" ⚔ ", "error"), Span(sanitize(each))] for each in conflicts]
    return [[Span(f"   {sanitize(each)}")] for each in found.changed]


async def _land(app: Dashboard, tree: Tree, found: _Preview) -> None:
    texts = app.texts
    if found.check:
        app.show_message(texts("land.checking", tree=branch_text(tree)))
    arguments: dict[str, Json] = {"tree": tree.id, "check": [*found.check]}
    result = await app.act(LAND, arguments)
    if result is None:
        return
    if not result["success"]:
        app.show_failure(result)
        return
    status = result.get("status")
    values = {
        "tree": branch_text(tree),
        "into": sanitize(str(result["into"])),
        "commit": str(result["commit"])[:12],
        "status": texts("cli.try.timeout") if status is None else str(status),
    }
    said = texts(f"cli.land.{result['state']}", **values)
    if result["state"] == "conflict":
        said = texts("land.recorded", **values)
    has_landed = result["state"] in ("landed", "up_to_date")
    if result["state"] == "check_failed" and len(app.screen_stack) == 1:
        lines: list[Line] = [[Span(f" {each}")] for each in sanitize_lines(str(result["output"]).rstrip())]
        await app.push_screen_wait(LinesConfirmDialog(texts("land.title", **values), said, lines))
        return
    app.show_message(said, "information" if has_landed else "warning")
