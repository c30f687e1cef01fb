"""The list of pictures: the app, its size, and what to do before the picture is taken."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, TypeAlias

from textual.app import App
from textual.pilot import Pilot
from textual.worker import WorkerCancelled
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, developer, roster
from watchroom.agents.simulation.repository import RepositorySimulation, load_story, make_repository
from watchroom.agents.society import Society
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.place import workspace_root
from watchroom.features.trees.rows import TRY_AGENT
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.model import Row
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.context import AgentTarget, RowTarget
from watchroom_tui.dialogs.text_input import TextInputDialog
from watchroom_tui.screens.agents.buffers_screen import BuffersScreen
from watchroom_tui.screens.files.change_list import ChangeList
from watchroom_tui.screens.files.change_view import ChangeView
from watchroom_tui.screens.tasks.tree_list import TreeList

STORY_SECONDS = 110.0
"""Seconds that the team works before the first picture, because sparklines show two minutes."""

STORY_SPEED = 1.5

NARROW, MIDDLE, WIDE = (80, 24), (120, 40), (200, 60)

SOCIETY_SPEED = 1.0

REPOSITORY_SPEED = 4.0

REQUIREMENT = """Build a small calculator for the command line.

It reads a line, prints its value, and has tests."""

Build: TypeAlias = Callable[[Workspace], App[Any]]
Team: TypeAlias = Callable[[], AbstractContextManager[Workspace]]


@contextmanager
def society_at_work() -> Iterator[Workspace]:
    """Yield a team that works on a task, just after a failed command was repaired."""
    with (
        TemporaryDirectory(prefix="night-train-") as root,
        Workspace.open(os.path.join(root, "team")) as workspace,
    ):
        society = Society(workspace, lambda member: developer(member, "en", speed=SOCIETY_SPEED))
        folder = os.path.join(root, "calculator")
        task = society.submit_requirement(REQUIREMENT, folder, by="human:supervisor")
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(lambda: asyncio.run(society.run(task.id)))
            _wait_until(workspace, lambda: _has_repaired(workspace))
            yield workspace
            workspace.tools_for_human("supervisor").dispatch_tool_call(
                "end_task", {"task_id": task.id, "status": "cancelled", "report": ""}
            )
            work.result()


def _has_repaired(workspace: Workspace) -> bool:
    """Return whether a command has failed, and the newest one has not. By then some agents have done their
    part."""
    only = RowFilter(zone="command", tool="end_command")
    rows = workspace.journal.rows_before(workspace.journal.last_seq() + 1, only=only)
    codes = [row.detail.get("exit_code") for row in rows]
    return any(codes) and not codes[0]


def _wait_until(workspace: Workspace, holds: Callable[[], bool]) -> None:
    changed = Event()
    end = workspace.subscribe(changed.set)
    while not holds():
        changed.wait()
        changed.clear()
    end()


@contextmanager
def team_at_work() -> Iterator[Workspace]:
    """Yield a team that has worked for a while and continues. The same seed gives nearly the same story."""
    agents = roster(6)
    with (
        TemporaryDirectory(prefix="calculator-") as folder,
        Workspace.open(os.path.join(folder, "calculator"), agents) as workspace,
        Simulation(workspace, agents, seed=7, speed=STORY_SPEED, people=True),
    ):
        Event().wait(STORY_SECONDS)
        yield workspace


BRIEF = """# Opening night

The night train leaves at 22:40 from track 4.
The night train calls at eleven stations.

## Tickets

Seats cost 19 euros, beds 49 euros. 卧铺四十九欧元。

## Open

- Who welcomes the first passengers?
"""


@contextmanager
def editors_at_work() -> Iterator[Workspace]:
    """Yield three agents that edit in their own buffers: one has an open choice, one is behind, one has just
    begun."""
    with (
        TemporaryDirectory(prefix="night-train-") as root,
        Workspace.open(root, roster(3)) as workspace,
    ):
        names = [agent.id for agent in roster(3)]
        first, second, third = (workspace.tools(name).dispatch_tool_call for name in names)
        brief = {"filepath": "docs/brief.md", "content": BRIEF, "message": "What the evening is."}
        first("collab_write", brief)
        for call in (first, second):
            call("open_buffer", {"source": "collab", "path": "docs/brief.md"})
        second("brief_replace", {"old_text": "49 euros", "new_text": "45 euros"})
        second("brief_flush", {"message": "Beds cost less on the first night."})
        second("brief_append", {"text": "- Who opens the bar?\n"})
        first("brief_replace", {"old_text": "track 4", "new_text": "track 2"})
        first("brief_append", {"text": "- Which choir sings?\n"})
        first("brief_replace", {"old_text": "night train", "new_text": "*Nachtzug*"})
        third("open_buffer", {"source": "board", "path": f"bottom-layer-{names[2]}"})
        third("save_to_my_workspace", {"filename": "guests.md", "content": "- the mayor\n"})
        third("open_buffer", {"source": "private", "path": "guests.md"})
        third("guests_append", {"text": "- the choir\n"})
        yield workspace


DISPUTED = "release-notes.md"
"""The file that two agents of the team disagree on."""
NOTES = """# Release notes

## 1.0

- Sums and powers
- Errors name the column
- Whole numbers stay whole
"""
USAGE = """# Usage

    calculator "2 * (3 + 4)"

It prints 14.

## Errors

An error names the column that it was found at.

## Limits

Numbers have at most 1,000 digits.
"""


@contextmanager
def team_in_dispute() -> Iterator[Workspace]:
    """Yield three agents: two disagree on the release notes, and the third overwrites the others' work."""
    with (
        TemporaryDirectory(prefix="calculator-") as root,
        Workspace.open(os.path.join(root, "calculator"), ["coder", "tester", "writer"]) as workspace,
    ):
        coder, tester, writer = (
            workspace.tools(name).dispatch_tool_call for name in ("coder", "tester", "writer")
        )

        def write(call: Callable[..., object], path: str, text: str, expected: int, message: str) -> None:
            given = {"filepath": path, "content": text, "message": message, "expected_version": expected}
            call("collab_write", given)

        write(writer, DISPUTED, NOTES, 0, "Begin the release notes")
        powers = NOTES.replace("powers", "powers, from the right")
        write(coder, DISPUTED, powers, 1, "Say how powers group")
        write(writer, DISPUTED, NOTES.replace("Sums", "Sums, quotients"), 1, "Quotients work by now")
        write(writer, "docs/usage.md", USAGE, 0, "Show how it is called")
        broken = USAGE.replace("prints 14", "prints 42").replace("An error names", "No error names")
        write(tester, "docs/usage.md", broken, 1, "Simplify")
        more = broken.replace("1,000 digits", "10,000 digits").replace("it was found at", "it was found in")
        write(writer, "docs/usage.md", more, 2, "Longer numbers work")
        write(tester, "docs/faq.md", "It never fails.\n", 0, "Answer questions")
        tester("save_to_my_workspace", {"filename": "done.md", "content": "- all tests pass\n"})
        yield workspace


@contextmanager
def repository_at_rest() -> Iterator[Workspace]:
    """Yield a git repository after the demo: its agents are idle, and three things wait for a person."""
    with TemporaryDirectory(prefix="timetable-") as above:
        folder = os.path.join(above, "timetable")
        make_repository(folder)
        root = workspace_root(os.path.join(folder, ".git"))
        with Workspace.open(root, load_story().agents) as workspace:
            workspace.keep()
            with RepositorySimulation(workspace, folder, speed=REPOSITORY_SPEED) as simulation:
                simulation.wait(STORY_SECONDS)
                yield workspace


LINKED_TREE = "reservations"
"""The branch and the folder of the second working tree."""


@contextmanager
def repository_with_trees() -> Iterator[Workspace]:
    """The same with a second working tree, a commit ahead, and with a try of work in each of them."""
    with repository_at_rest() as workspace, TemporaryDirectory(prefix="copies-") as cache:
        main = workspace.trees.all()[0]
        folder = os.path.join(os.path.dirname(main.git.folder), LINKED_TREE)
        run_git(("worktree", "add", "-q", "-b", LINKED_TREE, folder), folder=main.git.folder)
        Path(folder, "SEATS.md").write_text("# Seats\n")
        run_git(("add", "."), folder=folder)
        run_git(("commit", "-q", "-m", "Describe the seats"), folder=folder)
        Path(folder, "SEATS.md").write_text("# Seats\n\nA seat costs 1.50 euros.\n")
        workspace.trees.refresh_all()
        person = CallContext("human:supervisor", TRY_AGENT)
        for tree in workspace.trees.all():
            words = ["/bin/sh", "-c", "exit 0" if tree.id == main.id else "exit 1"]
            workspace.agent_commits.try_agent(tree.git, ["claude1"], words, call=person, cache=cache)
        yield workspace


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture.

    - ``build``: makes the app over a workspace.
    - ``keys``: the keys to press.
    - ``act``: further steps, after the keys.
    - ``team``: yields the workspace.
    """

    name: str
    size: tuple[int, int]
    build: Build
    keys: tuple[str, ...] = ()
    act: Callable[[Pilot[Any]], Awaitable[None]] | None = None
    title: str = "watchroom"
    team: Team = team_at_work


def _dashboard(workspace: Workspace, language: Language = "en", place: str = "calculator/") -> WatchroomApp:
    return WatchroomApp(
        workspace.journal,
        place=place,
        language=language,
        open_workspace=lambda: workspace,
    )


def _repository(workspace: Workspace) -> WatchroomApp:
    return _dashboard(workspace, place="timetable/")


def _rooms(language: Language = "en") -> Build:
    """Return a builder of the dashboard, just after an external edit of the plan."""

    def build(workspace: Workspace) -> App[Any]:
        Path(workspace.root, "collaborative/current/plan.md").write_text("# Plan\n\nRewritten by hand.\n")
        workspace.scan()
        return _dashboard(workspace, language)

    return build


WAITING = ("workspace", "settle", "commit_agent", "agents", "editor")
"""Groups of workers that end only with the dashboard, or wait for the person."""


async def _settled(pilot: Pilot[Any]) -> None:
    """Wait until the journal is read, and the workers are done."""
    assert isinstance(pilot.app, WatchroomApp)
    while pilot.app.progress < 1:
        await pilot.pause(0.1)
    for worker in [each for each in pilot.app.workers if each.group not in WAITING]:
        # A cancelled worker is replaced by the next, which is also in the list.
        with suppress(WorkerCancelled):
            await worker.wait()
    await pilot.pause(0.3)


NEWS = 6
"""Number of edits before the document is opened again."""


def _at_the_dispute(
    show: Callable[[WatchroomApp, Row], Awaitable[None]], *keys: str
) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Return an act that shows the conflict waiting for a person, and presses ``keys`` there."""

    async def act(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, WatchroomApp)
        await _settled(pilot)
        conflict = next(each for each in app.model.conflicts if each.path == DISPUTED)
        await show(app, conflict.row)
        await _settled(pilot)
        for key in keys:
            await pilot.press(key)
            await _settled(pilot)

    return act


async def _in_its_file(app: WatchroomApp, row: Row) -> None:
    """Show ``row`` among the versions of its file."""
    await app.action_show_screen("files")
    if app.base_screen:
        app.base_screen.go_to(RowTarget(row))


async def _at_an_approval(pilot: Pilot[Any]) -> None:
    """Show the newest approval request, because it has the most time left."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _settled(pilot)
    while not (asked := [each for each in app.model.requests if each.kind == "approve"]):
        await pilot.pause(0.2)
    await app.action_show_screen("requests")
    if app.base_screen:
        app.base_screen.go_to(RowTarget(asked[0].row))
    await _settled(pilot)


async def _at_a_choice(pilot: Pilot[Any]) -> None:
    """Show the buffer with an open choice."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _settled(pilot)
    while not (choosing := [each for each in app.model.buffers if each.waits_for_choice]):
        await pilot.pause(0.2)
    await app.push_screen(BuffersScreen(choosing[0].path))
    await _settled(pilot)
    await pilot.press("enter")


async def _at_a_session(pilot: Pilot[Any]) -> None:
    """Show a session with a request, or with the most steps."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _settled(pilot)
    longest = max(
        (view for view in app.model.agents if view.session is not None),
        key=lambda view: (view.request is not None, view.session.last.version if view.session else 0),
    )
    await app.navigator.go_to("agents", AgentTarget(longest.agent.id))
    await pilot.press("enter", "up", "up", "enter")
    await _settled(pilot)


async def _at_the_board(pilot: Pilot[Any]) -> None:
    """Show the document that the team edits, with news since the last view."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _settled(pilot)
    await pilot.press("5")
    await _settled(pilot)
    written = app.model.documents[0].version
    await pilot.press("1")
    while app.model.documents[0].version < written + NEWS:
        await pilot.pause(0.2)
    await pilot.press("5", "enter")
    await _settled(pilot)


async def _at_the_board_earlier(pilot: Pilot[Any]) -> None:
    """Show an earlier version of the document."""
    await _settled(pilot)
    await pilot.press("5", "enter")
    await _settled(pilot)
    await pilot.press(*["left_square_bracket"] * 7)
    await _settled(pilot)


async def _writing_on_a_board(pilot: Pilot[Any]) -> None:
    """Start to edit the global board."""
    await _settled(pilot)
    await pilot.press("6")
    await _settled(pilot)
    await pilot.press("e")
    await _settled(pilot)


async def _in_light(pilot: Pilot[Any]) -> None:
    """Show the light theme."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    app.action_flip_theme()
    await _settled(pilot)


async def _at_an_agent(pilot: Pilot[Any]) -> None:
    """Show the newest agent of the task under the cursor, and the file that it wrote last."""
    await _settled(pilot)
    await pilot.press("9")
    await _settled(pilot)
    await pilot.press("tab", "end", "tab", "end")
    await _settled(pilot)


async def _at_an_earlier_moment(pilot: Pilot[Any]) -> None:
    """Show the overview at the moment three markers ago."""
    await _settled(pilot)
    await pilot.press("T")
    for _ in range(3):
        await pilot.press("left_square_bracket")
        await _settled(pilot)


async def _reverting(pilot: Pilot[Any]) -> None:
    """Show the preview of a revert of the tester's work."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _settled(pilot)
    await app.navigator.go_to("agents", AgentTarget("tester"))
    await _settled(pilot)
    await pilot.press("V")
    await _settled(pilot)


CHANGED_BY_TWO = "timetable/__main__.py"


async def _at_the_changes(pilot: Pilot[Any]) -> None:
    """Show the changes since HEAD, and the file that two agents have changed."""
    app = pilot.app
    await _settled(pilot)
    await pilot.press("4")
    await _settled(pilot)
    changes = app.screen.query_one(ChangeList)
    while not changes.files:
        await pilot.pause(0.1)
    path = next(each.head.path for each in changes.files if each.name == CHANGED_BY_TWO)
    changes.move_to_file(path)
    await _settled(pilot)


COMMENTS = (
    ("timetable.seats import reserve", "Import it only with --seat: it is slow to load."),
    ("seats, extra = reserve(connection)", "What if a train has no free seat?"),
)
"""What a person says of lines."""


async def _commenting(pilot: Pilot[Any]) -> None:
    """Have shown what a person says of lines that an agent wrote."""
    app = pilot.app
    assert isinstance(app, WatchroomApp)
    await _at_the_changes(pilot)
    await pilot.press("enter")
    if not app.model.comments:
        for words, text in COMMENTS:
            view = app.screen.query_one(ChangeView)
            while view.line is None or words not in view.line.text:
                await pilot.press("down")
            await pilot.press("semicolon")
            while not isinstance(app.screen, TextInputDialog):
                await pilot.pause(0.05)
            await pilot.press(*text, "enter")
            while not any(each.text == text for each in app.model.comments):
                await pilot.pause(0.05)
            await _settled(pilot)
    await _settled(pilot)


async def _sending_comments(pilot: Pilot[Any]) -> None:
    """Have shown what an agent reads of them."""
    await _commenting(pilot)
    await pilot.press("m")
    await pilot.pause(0.5)


async def _at_the_trees(pilot: Pilot[Any]) -> None:
    """Have the working trees shown."""
    app = pilot.app
    await _settled(pilot)
    await pilot.press("9")
    trees = app.screen.query_one(TreeList)
    while not all(each.details for each in trees.items) or len(trees.items) < 2:
        await pilot.pause(0.1)
    await _settled(pilot)


async def _committing_an_agent(pilot: Pilot[Any]) -> None:
    """Show the preview of a commit of one agent's work."""
    await _at_the_changes(pilot)
    await pilot.press("K")
    await _settled(pilot)


async def _merging(app: WatchroomApp, row: Row) -> None:
    await app.navigator.open_merge(row)


SHOTS: tuple[Shot, ...] = (
    Shot("overview", MIDDLE, _rooms(), act=_settled),
    Shot("overview-narrow", NARROW, _rooms(), act=_settled),
    Shot("overview-wide", WIDE, _rooms(), act=_settled),
    Shot("overview-light", MIDDLE, _rooms(), act=_in_light),
    Shot("overview-chinese", MIDDLE, _rooms("zh"), act=_settled),
    Shot("agents", MIDDLE, _rooms(), ("2", "down", "tab", "down"), act=_settled),
    Shot("session", MIDDLE, _rooms(), ("2",), act=_at_a_session),
    Shot("requests", MIDDLE, _rooms(), act=_at_an_approval),
    Shot("handoffs", MIDDLE, _rooms(), ("3", "down"), act=_settled),
    Shot("files", MIDDLE, _rooms(), ("4", "end"), act=_settled),
    Shot("files-narrow", NARROW, _rooms(), ("4", "end", "tab"), act=_settled),
    Shot("document", MIDDLE, _rooms(), act=_at_the_board),
    Shot("document-earlier", WIDE, _rooms(), act=_at_the_board_earlier),
    Shot("boards", MIDDLE, _rooms(), ("6",), act=_settled),
    Shot("boards-wide", WIDE, _rooms(), ("6",), act=_settled),
    Shot("board-edit", MIDDLE, _rooms(), act=_writing_on_a_board),
    Shot("merge", MIDDLE, _dashboard, act=_at_the_dispute(_merging), team=team_in_dispute),
    Shot("merge-narrow", NARROW, _dashboard, act=_at_the_dispute(_merging, "c"), team=team_in_dispute),
    Shot("commit", MIDDLE, _dashboard, act=_at_the_dispute(_merging, "c", "i", "w"), team=team_in_dispute),
    Shot("conflict", MIDDLE, _dashboard, act=_at_the_dispute(_in_its_file), team=team_in_dispute),
    Shot("sides", WIDE, _dashboard, act=_at_the_dispute(_in_its_file, "s"), team=team_in_dispute),
    Shot("blame", MIDDLE, _dashboard, act=_at_the_dispute(_in_its_file, "L"), team=team_in_dispute),
    Shot("revert", MIDDLE, _dashboard, act=_reverting, team=team_in_dispute),
    Shot("revert-narrow", NARROW, _dashboard, act=_reverting, team=team_in_dispute),
    Shot("revert-wide", WIDE, _dashboard, act=_reverting, team=team_in_dispute),
    Shot("timeline", MIDDLE, _rooms(), act=_at_an_earlier_moment),
    Shot("activity", MIDDLE, _rooms(), ("8", "down", "down"), act=_settled),
    Shot("tasks", MIDDLE, _dashboard, act=_at_an_agent, team=society_at_work),
    Shot("tasks-narrow", NARROW, _dashboard, ("9", "tab"), act=_settled, team=society_at_work),
    Shot("tasks-wide", WIDE, _dashboard, act=_at_an_agent, team=society_at_work),
    Shot("buffers", MIDDLE, _dashboard, act=_at_a_choice, team=editors_at_work),
    Shot("buffers-narrow", NARROW, _dashboard, act=_at_a_choice, team=editors_at_work),
    Shot("repository", MIDDLE, _repository, act=_at_the_changes, team=repository_at_rest),
    Shot("repository-narrow", NARROW, _repository, act=_at_the_changes, team=repository_at_rest),
    Shot("repository-wide", WIDE, _repository, act=_at_the_changes, team=repository_at_rest),
    Shot("repository-commit", MIDDLE, _repository, act=_committing_an_agent, team=repository_at_rest),
    Shot("repository-comments", MIDDLE, _repository, act=_commenting, team=repository_at_rest),
    Shot("repository-comments-narrow", NARROW, _repository, act=_commenting, team=repository_at_rest),
    Shot("repository-comments-wide", WIDE, _repository, act=_commenting, team=repository_at_rest),
    Shot("repository-send", MIDDLE, _repository, act=_sending_comments, team=repository_at_rest),
    Shot("repository-trees", MIDDLE, _repository, act=_at_the_trees, team=repository_with_trees),
    Shot("repository-trees-narrow", NARROW, _repository, act=_at_the_trees, team=repository_with_trees),
    Shot("repository-trees-wide", WIDE, _repository, act=_at_the_trees, team=repository_with_trees),
    Shot("help", MIDDLE, _rooms(), ("4", "question_mark"), act=_settled),
)
