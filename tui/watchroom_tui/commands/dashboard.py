"""Commands that open the dashboard: open, demo; and keys, which prints what it answers to."""

from __future__ import annotations

import getpass
import json
import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, fields
from threading import Event
from typing import TYPE_CHECKING

from watchroom.journal import Journal
from watchroom.texts import LANGUAGES

from watchroom_tui.commands.moments import moment, open_journal
from watchroom_tui.wording import wording

if TYPE_CHECKING:
    from watchroom.simulation import Summary
    from watchroom.workspace import Workspace


def declare_open(parser: ArgumentParser) -> None:
    parser.add_argument("dir", nargs="?", default=".")
    parser.add_argument("--at", metavar="SEQ | TIME", help="look at an earlier moment")
    parser.add_argument("--as", dest="person", metavar="NAME", help="who you are, in what you do")
    parser.add_argument("--language", choices=LANGUAGES, default="en")


def open_dashboard(given: Namespace) -> int:
    with ExitStack() as stack:
        journal = stack.enter_context(closing(open_journal(given.dir)))
        until = moment(journal, given.at) if given.at else None

        def opened() -> Workspace:
            from watchroom.workspace import Workspace

            return stack.enter_context(Workspace.open(given.dir, create=False))

        _run(journal, given.dir, given, opened, until=until)
    return 0


def declare_demo(parser: ArgumentParser) -> None:
    parser.add_argument("dir", nargs="?", help="a folder for the workspace; a temporary one if left out")
    parser.add_argument(
        "--agents", type=int, default=5, metavar="N", help="how many agents, 3 or more (default 5)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same decisions")
    parser.add_argument("--speed", type=float, default=1.0, help="2 is twice as fast; 0 makes no pauses")
    parser.add_argument(
        "--headless", action="store_true", help="without the dashboard; prints a summary as JSON"
    )
    parser.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="end after so long")
    parser.add_argument("--as", dest="person", metavar="NAME", help="who you are, in what you do")
    parser.add_argument("--language", choices=LANGUAGES, default="en")


def demo(given: Namespace) -> int:
    from watchroom.simulation import Simulation, roster
    from watchroom.workspace import Workspace

    if given.agents < 3:
        print(
            "watchroom demo: --agents takes 3 or more: the story needs a researcher, an analyst and a writer"
        )
        return 2
    with ExitStack() as stack:
        root = given.dir or stack.enter_context(tempfile.TemporaryDirectory(prefix="watchroom-demo-"))
        agents = roster(given.agents)
        workspace = stack.enter_context(Workspace.open(root, agents, language=given.language))
        simulation = Simulation(
            {agent.id: workspace.tools(agent.id) for agent in agents}, seed=given.seed, speed=given.speed
        )
        if given.headless:
            with simulation:
                Event().wait(given.seconds or 10.0)
        else:
            simulation.start()
            stack.callback(simulation.stop)
            _run(workspace.journal, root, given, lambda: workspace)
            simulation.stop()
        workspace.flush()
        summary = _plain(simulation.summary())
        problems = workspace.verify()
        verdict = "clean" if not problems else [asdict(problem) for problem in problems]
        if given.headless:
            rows = workspace.journal.last_seq()
            print(json.dumps({"workspace_rows": rows, **summary, "verify": verdict}, ensure_ascii=False))
    return 0 if not problems else 1


def declare_keys(parser: ArgumentParser) -> None:
    parser.add_argument("--language", choices=LANGUAGES, default="en")


def keys(given: Namespace) -> int:
    from watchroom_tui.actions import keys_page

    print(keys_page(wording(given.language)))
    return 0


def _run(
    journal: Journal,
    root: str,
    given: Namespace,
    open_workspace: Callable[[], Workspace],
    *,
    until: int | None = None,
) -> None:
    from watchroom_tui.app import WatchroomApp

    WatchroomApp(
        journal,
        place=os.path.basename(os.path.abspath(root)) + "/",
        language=given.language,
        until=until,
        watched=os.path.join(root, ".watchroom"),
        person=given.person or _person(),
        open_workspace=open_workspace,
    ).run()


def _plain(summary: Summary) -> dict[str, object]:
    """The summary's fields as JSON knows them."""
    values = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "supervisor"
