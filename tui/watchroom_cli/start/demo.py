"""The command demo: show simulated agents at work."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from watchroom.features.policy.shown_commands import quote_command
from watchroom.texts import Catalogue
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.terminal.session import require_terminal

from watchroom_cli.command import print_json
from watchroom_cli.start.dashboard import declare_common, is_foreign, run_dashboard
from watchroom_cli.termination import sleep

if TYPE_CHECKING:
    from watchroom.agents.simulation import Scenario, Summary

DEMO_AGENTS: Final = 6
HEADLESS_SECONDS: Final = 10.0
REPOSITORY_DEMO: Final = "repository"
"""The name of the scenario in a git repository."""


def declare_demo(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("dir", nargs="?", help=texts("cli.argument.demo_dir"))
    parser.add_argument("--agents", type=int, metavar="N", help=texts("cli.argument.agents"))
    parser.add_argument("--scenario", metavar="FILE", help=texts("cli.argument.scenario"))
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=texts("cli.argument.seed"))
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help=texts("cli.argument.speed"))
    parser.add_argument("--machines", type=int, default=1, metavar="N", help=texts("cli.argument.machines"))
    parser.add_argument("--headless", action="store_true", help=texts("cli.argument.headless"))
    parser.add_argument(
        "--for", dest="seconds", type=float, metavar="SECONDS", help=texts("cli.argument.for")
    )
    declare_common(parser, texts)


def run_demo(args: Namespace, texts: Catalogue) -> int:
    if not (args.headless or args.plain):
        require_terminal(texts, "watchroom demo --plain, watchroom demo --headless")
    if args.scenario == REPOSITORY_DEMO:
        from watchroom_cli.start.demo_repository import run_repository_demo

        return run_repository_demo(args, texts)
    import tempfile
    from dataclasses import asdict

    from watchroom.agents.simulation import Simulation
    from watchroom.workspace import Workspace

    from watchroom_cli.start.demo_machines import MAX_MACHINES, demo_machines
    from watchroom_cli.start.demo_outcomes import count_outcomes
    from watchroom_cli.start.state_files import forget_demo

    scenario = _read_scenario(args.scenario, texts)
    count = DEMO_AGENTS if args.scenario is None and args.agents is None else args.agents
    if count is not None and count < scenario.at_least:
        raise WrongUsage(texts("cli.demo.too_few", fewest=scenario.at_least))
    if args.speed < 0 or (args.seconds is not None and args.seconds <= 0):
        raise WrongUsage(texts("cli.demo.not_positive"))
    most = min(MAX_MACHINES, (count or DEMO_AGENTS) - 1)
    if not 1 <= args.machines <= most:
        raise WrongUsage(texts("cli.demo.machines", most=most))
    if args.dir and is_foreign(args.dir):
        raise WrongUsage(texts("cli.demo.not_empty", root=args.dir))
    with ExitStack() as stack:
        root = args.dir or os.path.join(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="watchroom-demo-")), "calculator"
        )
        if not args.dir and args.machines > 1:
            # The database runs as another user if root starts the demo, and must reach its folder in here.
            os.chmod(os.path.dirname(root), 0o711)  # noqa: S103  # allows traversal, not listing
        agents = scenario.roster(count)
        address, apart = stack.enter_context(
            demo_machines(root, agents, args.machines, args.speed, scenario.second_process)
        )
        if not args.dir:
            stack.callback(forget_demo, address if args.machines > 1 else os.path.realpath(root))
        workspace = stack.enter_context(
            Workspace.open(address, agents, language=args.language, checkout=root)
        )
        workspace.journal.presence.hold(resume=quote_command(["watchroom", "demo", root]))
        simulation = Simulation(
            workspace,
            agents,
            scenario=scenario,
            seed=args.seed,
            speed=args.speed,
            people=not args.headless,
            apart=apart,
        )
        if not args.headless:
            with simulation:
                if args.plain:
                    from watchroom_cli.watch.watch import watch_files, watch_plainly

                    watch_files(workspace, texts)
                    status = watch_plainly(workspace.journal, root, args, workspace)
                else:
                    status = run_dashboard(workspace.journal, root, args, lambda: workspace)
            if args.dir:
                print(texts("cli.demo.kept", root=place_word(root)))
            return status
        workspace.file_watcher.subscribe()
        with simulation:
            sleep(HEADLESS_SECONDS if args.seconds is None else args.seconds)
        workspace.flush()
        problems = workspace.verify()
        summary = {
            "rows": count_outcomes(workspace.journal),
            **_plain(simulation.summary()),
            "verify": "clean" if not problems else [asdict(problem) for problem in problems],
        }
        print_json(summary)
    return 0 if not problems else 1


def _read_scenario(path: str | None, texts: Catalogue) -> Scenario:
    """Return the built-in scenario ``path`` (default: the first scenario), or the scenario in the file at
    ``path``. Raise `InvalidScenario`, and `WrongUsage` if the file cannot be read."""
    from watchroom.agents.simulation import BUILT_IN_NAMES, demo, load

    if path is None:
        return demo()
    try:
        return demo(path) if path in BUILT_IN_NAMES else load(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise WrongUsage(texts("cli.demo.unreadable", path=path, reason=reason)) from error


def _plain(summary: Summary) -> dict[str, object]:
    """Return the summary's fields and rates as JSON values."""
    from dataclasses import fields

    values = {field.name: getattr(summary, field.name) for field in fields(summary)}
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    rates = {"conflict_rate": summary.conflict_rate, "recovery_rate": summary.recovery_rate}
    return plain | {name: round(rate, 4) for name, rate in rates.items()}
