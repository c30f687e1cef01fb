"""Commit the work of one agent apart from that of others: the plan, the difference, then the message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from watchroom.algorithms.merge import diff_hunks
from watchroom.errors import WatchroomError
from watchroom.features.trees.rows import COMMIT_AGENT, Tree
from watchroom.model import Json
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.commit import CommitDialog
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.text_drawing import TextDrawing
from watchroom_tui.formatters.tree_changes import blocked_text, propose_branch
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.widgets.line_view import LineView

if TYPE_CHECKING:
    from watchroom.features.trees.commits import CommitPlan
    from watchroom.workspace import Workspace

_MOST_LINES: Final = 400
"""Of one difference."""
_STYLES: Final = {"+": "added", "-": "removed", "@": "header-line"}


class CommitChoice(NamedTuple):
    """The commit that a person chose, and its plan as it was shown. ``branch``: None for the checked-out
    one."""

    agent: str
    branch: str | None
    lines: Sequence[Line]


class AgentCommitDialog(ConfirmDialog):
    """Shows the plan of a commit of one of ``agents`` in ``tree``. Afterwards `choice` is what was chosen."""

    BINDINGS = bindings("agent_commit")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("agent_commit", "confirm")

    def __init__(self, tree: Tree, agents: Sequence[str], agent: str, texts: Catalogue) -> None:
        super().__init__(texts("commit_agent.title"), texts("commit_agent.planning"))
        self._tree = tree
        self._agents = agents
        self._at = agents.index(agent)
        self._is_here = True
        self.choice: CommitChoice | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineView(
                title="commit_agent.title", empty="commit_agent.planning", id="changes", classes="pane"
            )
            yield from super().compose()

    def on_mount(self) -> None:
        self.load()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "step_agent" or len(self._agents) > 1

    def action_step_agent(self, step: int) -> None:
        """Show the plan of the agent before or after this one."""
        self._at = (self._at + step) % len(self._agents)
        self.load()

    def action_flip_branch(self) -> None:
        """Commit onto the checked-out branch, or onto a new one."""
        self._is_here = not self._is_here
        self.load()

    def action_answer(self, answer: bool) -> None:
        if not answer or self.choice is not None:
            self.dismiss(answer)

    @work(exclusive=True, group="plan")
    async def load(self) -> None:
        """Plan, and show what would be committed."""
        app, texts = self.dashboard, self.dashboard.texts
        self.choice = None
        workspace = await app.wait_for_workspace()
        if workspace is None:
            self.dismiss(False)
            return
        agent = self._agents[self._at]
        try:
            lines, count = await asyncio.to_thread(self._read_plan, workspace, agent, texts)
        except (WatchroomError, OSError) as error:
            said = error.message(app.language) if isinstance(error, WatchroomError) else str(error)
            app.show_message(sanitize(said), "error")
            self.dismiss(False)
            return
        branch = None if self._is_here else propose_branch([agent])
        place = sanitize(branch or self._tree.branch or self._tree.head[:12])
        values = {"agent": sanitize(agent), "branch": place, "count": count}
        view = self.query_one("#changes", LineView)
        view.show_notice((agent, branch), lines, title=texts("commit_agent.onto", **values))
        if count:
            self.choice = CommitChoice(agent, branch, lines)
        new = "" if self._is_here else f" {texts('commit_agent.new_branch')}"
        key = "commit_agent.question" if count else "commit_agent.nothing"
        self.ask(texts(key, **values) + (new if count else ""))

    def _read_plan(self, workspace: Workspace, agent: str, texts: Catalogue) -> tuple[list[Line], int]:
        trees = workspace.trees
        found = trees.tree(self._tree.id)
        if found is None:
            return [], 0
        trees.refresh(found)
        plan = workspace.agent_commits.plan(found.git, [agent])
        entries = found.git.list_tree(plan.head, [each.path for each in plan.files]) if plan.head else {}
        before = found.git.read_blobs([each.path for each in plan.files], entries=entries)
        return plan_lines(plan, before, texts), len(plan.files)


def plan_lines(plan: CommitPlan, before: dict[str, bytes | None], texts: Catalogue) -> list[Line]:
    """The plan as people read it: the files, what is left out and why, then how each file changes."""
    lines: list[Line] = [[]]
    for each in plan.files:
        kind = "D" if each.state is None else "A" if before.get(each.path) is None else "M"
        lines.append([Span(f" {kind} ", "accent"), Span(sanitize(each.path))])
    for blocked in plan.blocked:
        said = blocked_text(blocked, texts)
        lines.append([Span(" ! ", "warning"), Span(sanitize(blocked.path)), Span(f"  {said}", "dim")])
    for each in plan.files:
        after = b"" if each.state is None else each.state.data
        lines += [[], [Span(f" {sanitize(each.path)}", "strong")]]
        lines += _difference(before.get(each.path) or b"", after, texts)
    return lines


def _difference(before: bytes, after: bytes, texts: Catalogue) -> list[Line]:
    if b"\0" in before + after:
        return [[Span(f"   {texts('commit_agent.binary')}", "dim")]]
    hunks = diff_hunks(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    told = sanitize_lines(hunks)
    lines: list[Line] = [[Span(f"   {line}", _STYLES.get(line[:1], ""))] for line in told[:_MOST_LINES]]
    return [*lines, [Span("   …", "dim")]] if len(told) > _MOST_LINES else lines


async def commit_agent(app: Dashboard, tree: Tree, agents: Sequence[str], agent: str) -> None:
    """Show what a commit of ``agent`` in ``tree`` has, ask for its message, and make it. Await it in a
    worker."""
    texts = app.texts
    dialog = AgentCommitDialog(tree, agents, agent, texts)
    if not await app.push_screen_wait(dialog) or dialog.choice is None:
        return
    choice = dialog.choice
    place = sanitize(choice.branch or tree.branch or tree.head[:12])
    title = texts("commit_agent.onto", agent=sanitize(choice.agent), branch=place)
    message = await app.push_screen_wait(CommitDialog(TextDrawing(None, head=choice.lines), title, ""))
    if message is None:
        return
    arguments: dict[str, Json] = {
        "tree": tree.id,
        "agents": [choice.agent],
        "message": message,
        "branch": choice.branch,
    }
    result = await app.act(COMMIT_AGENT, arguments)
    if result is None:
        return
    if not result["success"]:
        app.show_message(f"{result['message']} {result['suggestion']}", "error")
        return
    files = result["files"]
    count = len(files) if isinstance(files, Sequence) else 0
    values = {"commit": str(result["commit"])[:12], "branch": sanitize(str(result["branch"])), "count": count}
    app.show_message(texts("cli.commit.done", **values))
