"""The entry point of the program. It answers ``--version``, ``status --line`` and the hooks of the plugin
before the command line is loaded, which takes longer than the answer."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line of this process. Return the exit status."""
    _become_hook(sys.argv[1:])
    line = _find_line(sys.argv[1:])
    if line is None or not _write(line):
        from watchroom_cli.main import main as run_command

        return run_command()
    return 0


def _write(line: str) -> bool:
    """Write ``line`` to standard output. Return False if that fails, which the command line reports."""
    if not line or sys.stdout is None:
        return True
    try:
        os.write(sys.stdout.fileno(), f"{line}\n".encode(sys.stdout.encoding, "replace"))
    except BrokenPipeError:
        # The reader may end first.
        return True
    except OSError:
        return False
    return True


def _become_hook(typed: list[str]) -> None:
    """Replace this process with the small program for hooks, if ``typed`` is a hook of the plugin."""
    if typed[:1] != ["hook"] or typed[-1:] != ["--plugin"]:
        return
    from watchroom_cli.command import isolated_program, own_program

    command = [*isolated_program(), *own_program(), *typed[:-1]]
    os.execv(command[0], command)  # noqa: S606  # the same program, without the libraries


def _find_line(typed: list[str]) -> str | None:
    """Return the version or the status line. None if ``typed`` asks for something else, or nobody answers."""
    if typed == ["--version"]:
        from watchroom import __version__

        return f"watchroom {__version__}"
    place, *more = [*typed[2:], os.curdir]
    if typed[:2] != ["status", "--line"] or len(more) > 1 or place.startswith("-"):
        return None
    from watchroom_cli.status_line import ask_for_line

    return ask_for_line(place, os.environ.get("WATCHROOM_LANGUAGE", "en"))


if __name__ == "__main__":
    sys.exit(main())
