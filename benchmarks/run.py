"""Run benchmarks and print one table: ``python benchmarks/run.py [NAME …]`` or ``python -m benchmarks``.

The proofs that nothing is lost are in ``reliability/``. Each of its modules is a command with its own
options, such as ``python -m benchmarks torture --minutes 5``. So is ``peers``, which also measures other
programs.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable

import boards
import commits
import conversations
import hooks
import journals
import machines
import reliability
import sealing
import sharing
import storage
import syncs
import trees
import writing_together
from measure import Measure, table

BENCHMARKS: dict[str, Callable[[], list[Measure]]] = {
    "storage": storage.measure,
    "commits": commits.measure,
    "syncs": syncs.measure,
    "journals": journals.measure,
    "machines": machines.measure,
    "sharing": sharing.measure,
    "conversations": conversations.measure,
    "documents": writing_together.measure,
    "boards": boards.measure,
    "sealing": sealing.measure,
    "hooks": hooks.measure,
    "trees": trees.measure,
}


def main(arguments: list[str]) -> int:
    modules = [each.name for each in pkgutil.iter_modules(reliability.__path__) if not each.ispkg]
    proofs = {each.replace("_", "-"): f"reliability.{each}" for each in modules}
    commands = {"peers": "peers.command", **proofs}
    if arguments and arguments[0] in commands:
        status: int = importlib.import_module(commands[arguments[0]]).main(arguments[1:])
        return status
    parser = argparse.ArgumentParser(
        description="Measure, each beside its yardstick.",
        epilog=f"With options of their own, one at a time: {', '.join(commands)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    names = parser.parse_args(arguments).names or list(BENCHMARKS)
    if set(names) - set(BENCHMARKS):
        parser.error(f"there are {', '.join([*BENCHMARKS, *commands])}")
    measures: list[Measure] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        measures += BENCHMARKS[name]()
    print(table(measures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
