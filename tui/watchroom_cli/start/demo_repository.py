"""The demo of a git repository: simulated clients work in it with their own tools."""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Final

from watchroom.agents.simulation.repository import RepositorySimulation, load_story, make_repository
from watchroom.features.policy.shown_commands import quote_command
from watchroom.features.trees.place import workspace_root
from watchroom.features.trees.reads import TreeReader
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.command import print_json
from watchroom_cli.start.dashboard import run_dashboard
from watchroom_cli.start.demo_outcomes import count_outcomes
from watchroom_cli.start.state_files import forget_demo

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp

_FOLDER: Final = "timetable"
_NOTICE_SECONDS: Final = 30.0
_STORY_SECONDS: Final = 300.0
"""Max seconds of a headless demo. The story takes less than a minute at speed 1."""


class _Ending:
    """Notifies the dashboard of the remaining steps when the story ends. The journal also contains the
    message."""

    def __init__(self) -> None:
        self._app: WatchroomApp | None = None

    def show_in(self, app: WatchroomApp) -> None:
        """Set the dashboard that shows the notification."""
        self._app = app

    def show(self, text: str) -> None:
        """Show ``text`` in the dashboard. Can be called from any thread but the dashboard's own."""
        app = self._app
        if app is None:
            return
        notify = partial(app.notify, sanitize(text), markup=False, timeout=_NOTICE_SECONDS)
        # The dashboard may be closed, or not yet open.
        with suppress(RuntimeError):
            app.call_from_thread(notify)


def run_repository_demo(args: Namespace, texts: Catalogue) -> int:
    """Play the story in a new repository, and return the exit status. Remove the repository at the end,
    unless the person has named its folder."""
    if args.agents is not None or args.machines != 1:
        raise WrongUsage(texts("cli.demo.own_team"))
    if args.speed < 0 or (args.seconds is not None and args.seconds <= 0):
        raise WrongUsage(texts("cli.demo.not_positive"))
    if args.dir and os.path.lexists(args.dir) and not (os.path.isdir(args.dir) and not os.listdir(args.dir)):
        raise WrongUsage(texts("cli.demo.occupied", root=args.dir))
    with ExitStack() as stack:
        folder = args.dir or os.path.join(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="watchroom-demo-")), _FOLDER
        )
        folder = os.path.realpath(folder)
        make_repository(folder)
        root = workspace_root(os.path.join(folder, ".git"))
        if not args.dir:
            stack.callback(forget_demo, root)
        workspace = stack.enter_context(Workspace.open(root, load_story().agents, language=args.language))
        # This process records changes, because it answers the clients' hooks.
        workspace.keep()
        workspace.journal.presence.hold(resume=quote_command(["watchroom", folder]))
        ending = _Ending()
        simulation = RepositorySimulation(
            workspace, folder, seed=args.seed, speed=args.speed, on_end=ending.show
        )
        if args.headless:
            return _play_headless(workspace, simulation, args.seconds)
        with simulation:
            if args.plain:
                from watchroom_cli.watch.watch import watch_plainly

                status = watch_plainly(workspace.journal, root, args, workspace)
            else:
                status = run_dashboard(
                    workspace.journal, root, args, lambda: workspace, on_app=ending.show_in
                )
        if args.dir:
            print(texts("cli.demo.kept", root=place_word(folder)))
        return status


def _play_headless(workspace: Workspace, simulation: RepositorySimulation, seconds: float | None) -> int:
    """Play the story for at most ``seconds`` (default: `_STORY_SECONDS`), and print the result."""
    with simulation:
        is_over = simulation.wait(_STORY_SECONDS if seconds is None else seconds)
    workspace.flush()
    problems = workspace.verify()
    reader = TreeReader(workspace.journal)
    changed = {
        file.name: sorted(each.author.name for each in file.authors)
        for tree in reader.list_trees()
        for file in reader.list_changes(tree.id)
    }
    print_json(
        {
            "rows": count_outcomes(workspace.journal),
            "is_over": is_over,
            "changed": changed,
            "errors": list(simulation.errors),
            "verify": "clean" if not problems else [asdict(problem) for problem in problems],
        }
    )
    return 0 if not problems and not simulation.errors else 1
