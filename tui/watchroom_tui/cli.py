"""The command line: the composition root. Each command lives in `commands` and is imported when called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from watchroom.errors import WatchroomError

from watchroom_tui.commands import COMMANDS

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 for success, 1 for a refusal, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="watchroom", description="Supervise a team of AI agents and the files they share."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.declare(commands.add_parser(command.name, help=command.help, description=command.help))
    try:
        given = parser.parse_args(arguments)
    except SystemExit as usage:
        return int(usage.code or 0)
    command = next(each for each in COMMANDS if each.name == given.command)
    try:
        return command.run(given)
    except WatchroomError as error:
        print(f"watchroom: {error}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        return OK
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
