"""The resident service of a benchmark, separate from the user's own, and the hooks that call it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from watchroom.agents.clients import client_program, run_client_program
from watchroom.agents.clients.configuration import AttachedAs, HookProgram, build_configuration
from watchroom.platform import detect_platform

PROGRAM: Final = (sys.executable, "-P", "-m", "watchroom_cli.main")
"""The arguments that run ``watchroom``."""
_PATIENCE: Final = 20.0


@contextmanager
def own_service() -> Iterator[None]:
    """Use a separate service for all programs started within the context, and stop it at the end."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    # Paths of sockets must be short.
    folder = tempfile.mkdtemp(prefix="wr", dir="/tmp")
    os.environ["XDG_RUNTIME_DIR"] = folder
    try:
        yield
    finally:
        stop_service()
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def stop_service() -> None:
    """Stop the service if one runs, and wait for its end."""
    pid, started = client_program.service_process()
    with suppress(OSError, ValueError):
        client_program.ask("POST", "/stop", seconds=_PATIENCE)
    detect_platform().wait_ended(pid, started, _PATIENCE)


def server_command(root: str, agent: str) -> list[str]:
    """Return the command of the server that ``attach`` writes for ``agent``."""
    before = (sys.executable, "-I", "-S", run_client_program.__file__)
    return [*before, *PROGRAM, "mcp", root, "--agent", agent, "--client", "claude"]


def hook_lines(root: str, agent: str, *, is_strict: bool = False, has_curl: bool = True) -> dict[str, str]:
    """Return the lines that ``attach`` writes for ``agent``, by event."""
    timeout = shutil.which("timeout")
    hook = HookProgram(
        PROGRAM,
        (sys.executable, "-I", "-S", run_client_program.__file__),
        files=(sys.executable,),
        missing="no program",
        curl=(shutil.which("curl") or "") if has_curl else "",
        socket=client_program.socket_path(),
        timeout=(timeout, "5") if timeout else (),
    )
    written = build_configuration("claude", hook, AttachedAs(root, (agent,), is_strict))
    hooks: Any = next(fields["hooks"] for fields in written.json.values() if "hooks" in fields)
    return {event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()}
