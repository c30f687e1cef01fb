"""``python -m benchmarks peers``: measure all installed programs that do the same tasks.

Each peer is measured in turns with Watchroom, in one run. Missing peers are listed with the command to
install them. ``--install`` creates the environments of peers that need their own.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from platformdirs import user_cache_path
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from peers.comparison import Group, Row, RunContext, Unmeasured
from peers.groups import GROUPS
from peers.peer import InstallError, NodeProgram, Peer, PythonProgram
from peers.tables import render_json, render_markdown


def main(arguments: list[str]) -> int:
    """Measure the groups in ``arguments``. Return the exit status."""
    options = _parse(arguments)
    chosen = [group for group in GROUPS if not options.only or group.name in options.only]
    folder: Path = options.peers_folder.absolute()
    console = Console(stderr=True)
    if options.install:
        _install(chosen, folder, console)
    machine = _describe_machine()
    with _progress(console) as progress:
        bar = progress.add_task("all", total=len(chosen))
        measured = {}
        for group in chosen:
            if not console.is_terminal:
                print(f"{group.name} …", file=sys.stderr, flush=True)
            measured[group] = _measure(group, folder, progress)
            progress.advance(bar)
    if options.json:
        print(render_json(machine, measured))
    elif options.markdown:
        print(f"{machine}\n\n{render_markdown(measured)}")
    else:
        Console().print(Markdown(f"{machine}\n\n{render_markdown(measured)}"))
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks peers", description="Measure Watchroom beside its peers, in one run."
    )
    names = [group.name for group in GROUPS]
    parser.add_argument("--only", action="append", choices=names, help="this group; may be given again")
    parser.add_argument(
        "--install", action="store_true", help="first make the environments of peers that have none"
    )
    parser.add_argument(
        "--peers-folder",
        type=Path,
        default=user_cache_path("watchroom-peers"),
        help="where those environments are (%(default)s); not in the folder of temporary files",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    form.add_argument("--json", action="store_true", help="print all figures as JSON")
    return parser.parse_args(arguments)


def _install(groups: Sequence[Group], folder: Path, console: Console) -> None:
    peers = [
        peer
        for group in groups
        for peer in group.peers
        if isinstance(peer, PythonProgram | NodeProgram) and peer.version(folder) is None
    ]
    with _progress(console) as progress:
        bar = progress.add_task("installing", total=len(peers))
        for peer in peers:
            progress.update(bar, description=f"installing {peer.name}")
            try:
                peer.install(folder)
            except InstallError as error:
                progress.console.print(f"{peer.name} was not installed: {error}", markup=False)
            progress.advance(bar)


def _measure(group: Group, folder: Path, progress: Progress) -> list[Row]:
    versions = {peer.name: version for peer in group.peers if (version := peer.version(folder)) is not None}
    rows = group.measure(RunContext(folder, versions, progress))
    return [*rows, *(_not_installed(peer) for peer in group.peers if peer.name not in versions)]


def _not_installed(peer: Peer) -> Unmeasured:
    return Unmeasured(peer.name, f"not installed ({peer.how})")


def _describe_machine() -> str:
    system = f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}"
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    day = datetime.now(UTC).date().isoformat()
    return f"{day}; {os.cpu_count()} cores, {system}, Python {platform.python_version()}; load before: {load}"


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
