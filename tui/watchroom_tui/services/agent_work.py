"""Commit or try the work of an agent from any screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from watchroom.errors import WatchroomError
from watchroom.features.trees.rows import REPO, split_repo_path
from watchroom.kernel.journal import Journal
from watchroom.model import actor_kind

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.agent_commit import commit_agent
from watchroom_tui.presentation.sanitize import sanitize

if TYPE_CHECKING:
    from watchroom.features.trees.reads import TreeState


async def commit_work(app: Dashboard, agent: str) -> None:
    """Commit or try the work of ``agent`` in the tree that it changed last. Await it in a worker."""
    texts = app.texts
    if not app.can_act:
        app.explain_read_only()
        return
    try:
        states = await asyncio.to_thread(_read_states, app.journal)
    except (WatchroomError, OSError) as error:
        said = error.message(app.language) if isinstance(error, WatchroomError) else str(error)
        app.show_message(sanitize(said), "error")
        return
    mine = {each.tree.id: each for each in states if agent in each.agents}
    if not mine:
        app.show_message(texts("commit_agent.nothing", agent=sanitize(agent)), "warning")
        return
    heads = (each.head for each in app.model.tree_files if each.head.actor == agent)
    newest = sorted(heads, key=lambda row: row.seq, reverse=True)
    trees = [split_repo_path(row.path)[0] for row in newest if row.zone == REPO]
    state = next((mine[each] for each in trees if each in mine), next(iter(mine.values())))
    agents = [each for each in state.agents if actor_kind(each) == "agent"]
    await commit_agent(app, state.tree, agents, agent)


def _read_states(journal: Journal) -> list[TreeState]:
    # It knows git, which takes a while to load.
    from watchroom.features.trees.reads import TreeReader

    return TreeReader(journal).describe_trees()
