"""The entry point of the program. It answers ``watchroom status --line`` and the hooks of the plugin before
the command line is loaded, which takes longer than the answer."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def main() -> int:
    """Run the command line of this process. Return the exit status."""
    _become_hook(sys.argv[1:])
    line = _find_line(sys.argv[1:])
    if line is None:
        from watchroom_cli.main import main as run_command

        return run_command()
    if line and sys.stdout is not None:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        # The reader may end first.
        with suppress(BrokenPipeError):
            print(line, flush=True)
    return 0


def _become_hook(typed: list[str]) -> None:
    """Replace this process with the small program for hooks, if ``typed`` is a hook of the plugin."""
    if typed[:1] != ["hook"] or typed[-1:] != ["--plugin"]:
        return
    from watchroom_cli.command import isolated_program, own_program

    command = [*isolated_program(), *own_program(), *typed[:-1]]
    os.execv(command[0], command)  # noqa: S606  # the same program, without the libraries


def _find_line(typed: list[str]) -> str | None:
    """Return the status line. None if ``typed`` asks for something else, or nobody answers."""
    place, *more = [*typed[2:], os.curdir]
    if typed[:2] != ["status", "--line"] or len(more) > 1 or place.startswith("-"):
        return None
    from watchroom_cli.status_line import ask_for_line

    return ask_for_line(place, os.environ.get("WATCHROOM_LANGUAGE", "en"))


if __name__ == "__main__":
    sys.exit(main())
