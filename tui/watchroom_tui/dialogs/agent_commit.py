"""Commit or try the work of one agent without the work of other agents. First show the plan and the
difference, then ask for the message or the command."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import work
from watchroom.algorithms.merge import diff_hunks
from watchroom.errors import TreeGone, WatchroomError
from watchroom.features.trees.rows import COMMIT_AGENT, TRY_AGENT, Tree, read_try
from watchroom.model import Json, Row
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.commit import CommitDialog
from watchroom_tui.dialogs.confirm import LinesConfirmDialog, SheetDialog
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.text_drawing import TextDrawing
from watchroom_tui.formatters.tree_changes import blocked_text, branch_text, propose_branch
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from watchroom.features.trees.commits import CommitPlan
    from watchroom.features.trees.git import GitTree
    from watchroom.workspace import Workspace

_MOST_LINES: Final = 400
"""Maximum number of lines of one difference."""
_MOST_BYTES: Final = 1_000_000
"""Maximum size of both contents of a file whose difference is shown."""
_SHELL: Final = ("/bin/sh", "-c")
_STYLES: Final = {"+": "added", "-": "removed", "@": "header-line"}


class CommitChoice(NamedTuple):
    """The choice of a person, with the plan as displayed.

    - ``branch``: the new branch, None for the checked-out branch.
    - ``tries``: whether to try the work before the commit.
    """

    agent: str
    branch: str | None
    lines: Sequence[Line]
    tries: bool = False


class AgentCommitDialog(SheetDialog):
    """Dialog with the plan to commit the work of one of ``agents`` in ``tree``. `choice` is the choice of the
    person."""

    BINDINGS = bindings("agent_commit")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("agent_commit", "confirm")
    TEXT_TITLE: ClassVar = "commit_agent.title"
    TEXT_MISSING: ClassVar = "commit_agent.planning"

    def __init__(self, tree: Tree, agents: Sequence[str], agent: str, texts: Catalogue) -> None:
        super().__init__(texts("commit_agent.title"), texts("commit_agent.planning"))
        self._tree = tree
        self._agents = agents
        self._at = agents.index(agent)
        self._is_here = True
        self.choice: CommitChoice | None = None

    def on_mount(self) -> None:
        self.load()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "step_agent" or len(self._agents) > 1

    def action_step_agent(self, step: int) -> None:
        """Show the plan of the next agent (1) or the previous agent (-1)."""
        self._at = (self._at + step) % len(self._agents)
        self.load()

    def action_flip_branch(self) -> None:
        """Switch between the checked-out branch and a new branch."""
        self._is_here = not self._is_here
        self.load()

    def action_try_work(self) -> None:
        """Close the dialog to run a command on the shown work."""
        if self.choice is not None:
            self.choice = self.choice._replace(tries=True)
            self.dismiss(True)

    def action_answer(self, answer: bool) -> None:
        if not answer or self.choice is not None:
            self.dismiss(answer)

    @work(exclusive=True, group="plan")
    async def load(self) -> None:
        """Plan the commit, and show its changes."""
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
        title = texts("commit_agent.onto", **values)
        self.text_view.show_notice((agent, branch), lines, title=title)
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
        return plan_lines(plan, _read_before(found.git, plan), texts), len(plan.files)


def plan_lines(plan: CommitPlan, before: dict[str, bytes | None], texts: Catalogue) -> list[Line]:
    """Return the displayed lines of ``plan``: the files, the blocked files with reasons, then the difference
    of each file."""
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
        lines += difference_lines(before.get(each.path) or b"", after, texts)
    return lines


def difference_lines(before: bytes, after: bytes, texts: Catalogue) -> list[Line]:
    """Return the difference between two contents of a file as hunks, cut after `_MOST_LINES` lines. Empty if
    the contents exceed `_MOST_BYTES`."""
    if len(before) + len(after) > _MOST_BYTES:
        return [[Span("   …", "dim")]]
    if b"\0" in before + after:
        return [[Span(f"   {texts('commit_agent.binary')}", "dim")]]
    hunks = diff_hunks(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    told = sanitize_lines(hunks)
    lines: list[Line] = [[Span(f"   {line}", _STYLES.get(line[:1], ""))] for line in told[:_MOST_LINES]]
    return [*lines, [Span("   …", "dim")]] if len(told) > _MOST_LINES else lines


async def commit_agent(app: Dashboard, tree: Tree, agents: Sequence[str], agent: str) -> None:
    """Show the work of ``agent`` in ``tree``, and commit or try it if the person confirms. Await this in a
    worker."""
    dialog = AgentCommitDialog(tree, agents, agent, app.texts)
    if not await app.push_screen_wait(dialog) or dialog.choice is None:
        return
    if not dialog.choice.tries or await _try(app, tree, dialog.choice.agent):
        await _commit(app, tree, dialog.choice)


async def commit_all(app: Dashboard, tree: Tree) -> bool:
    """Show all uncommitted work in ``tree``, and commit it if the person confirms the message. Return whether
    it was committed. Await this in a worker."""
    # Slow to load, and needed only here.
    from watchroom.features.trees.commits import is_agent

    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
        return False
    try:
        plan, lines = await asyncio.to_thread(_read_all, workspace, tree, app.texts)
    except (WatchroomError, OSError) as error:
        said = error.message(app.language) if isinstance(error, WatchroomError) else str(error)
        app.show_message(sanitize(said), "error")
        return False
    if not plan.authors:
        app.show_message(app.texts("commit_agent.nobody"), "warning")
        return False
    agents = [sanitize(each) for each in plan.authors if is_agent(each)]
    key = "commit_agent.work_of" if agents else "commit_agent.work_in"
    message = app.texts(key, agents=", ".join(agents), tree=sanitize(tree.branch or tree.head[:12]))
    return await _commit(app, tree, CommitChoice("", None, lines), plan.authors, message)


def _read_all(workspace: Workspace, tree: Tree, texts: Catalogue) -> tuple[CommitPlan, list[Line]]:
    found = workspace.trees.tree(tree.id)
    if found is None:
        raise TreeGone(tree=branch_text(tree))
    workspace.trees.refresh(found)
    plan = workspace.agent_commits.plan(found.git)
    return plan, plan_lines(plan, _read_before(found.git, plan), texts)


def _read_before(git: GitTree, plan: CommitPlan) -> dict[str, bytes | None]:
    """Return the files of ``plan`` as they are in HEAD."""
    paths = [each.path for each in plan.files]
    return git.read_blobs(paths, entries=git.list_tree(plan.head, paths) if plan.head else {})


async def _commit(
    app: Dashboard, tree: Tree, choice: CommitChoice, agents: Sequence[str] = (), message: str = ""
) -> bool:
    """Ask for a message, and commit. Return whether that succeeded.

    - ``agents``: the authors, default the agent of ``choice``.
    - ``message``: the proposed message.
    """
    texts, names = app.texts, agents or [choice.agent]
    place = sanitize(choice.branch or tree.branch or tree.head[:12])
    title = texts("commit_agent.onto", agent=", ".join(map(sanitize, names)), branch=place)
    given = await app.push_screen_wait(CommitDialog(TextDrawing(None, head=choice.lines), title, message))
    if given is None:
        return False
    arguments: dict[str, Json] = {
        "tree": tree.id,
        "agents": [*names],
        "message": given,
        "branch": choice.branch,
    }
    result = await app.act(COMMIT_AGENT, arguments)
    if result is None:
        return False
    if not result["success"]:
        app.show_failure(result)
        return False
    files = result["files"]
    count = len(files) if isinstance(files, Sequence) else 0
    values = {"commit": str(result["commit"])[:12], "branch": sanitize(str(result["branch"])), "count": count}
    app.show_message(texts("cli.commit.done", **values))
    return True


async def _try(app: Dashboard, tree: Tree, agent: str) -> bool:
    """Ask for a command, run it on the work of ``agent``, and show the outcome. Return whether the person
    wants to commit now."""
    texts, name = app.texts, sanitize(agent)
    key = f"try {tree.id}"
    draft = app.drafts.find(TextDraft, key) or TextDraft(
        key, texts("commit_agent.try_draft", agent=agent), _last_command(app.model.tries.get(tree.id))
    )
    text = await enter_text(
        app, draft, texts("commit_agent.try_title", agent=name), texts("commit_agent.try_hint")
    )
    app.drafts.drop(TextDraft, key)
    if text is None:
        return False
    app.show_message(texts("commit_agent.trying", agent=name))
    arguments: dict[str, Json] = {"tree": tree.id, "agents": [agent], "command": [*_SHELL, text]}
    result = await app.act(TRY_AGENT, arguments)
    if result is None:
        return False
    if not result["success"]:
        app.show_failure(result)
        return False
    status, seconds = result.get("status"), result["seconds"]
    said = texts("cli.try.timeout") if status is None else str(status)
    ended = texts("commit_agent.tried", agent=name, status=said, seconds=f"{seconds:.1f}")
    if len(app.screen_stack) > 1:
        # Another dialog has the focus.
        app.show_message(ended, "information" if status == 0 else "error")
        return False
    lines: list[Line] = [[Span(f" {each}")] for each in sanitize_lines(str(result["output"]).rstrip())]
    question = f"{ended} {texts('commit_agent.commit_now')}"
    return await app.push_screen_wait(
        LinesConfirmDialog(texts("commit_agent.try_title", agent=name), question, lines)
    )


def _last_command(tried: Row | None) -> str:
    """Return the command of the newest try, as a person wrote it. Empty without a try."""
    words = () if tried is None else read_try(tried).command
    return words[-1] if words[:-1] == _SHELL else shlex.join(words)
