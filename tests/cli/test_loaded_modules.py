"""Commands import modules when they use them, because agents, hooks and scripts start many commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from watchroom import Workspace

OF_SCREENS = frozenset({"textual", "markdown_it", "psycopg", "watchroom_tui.services.settings"})
OF_SERVERS = frozenset({"mcp", "starlette", "uvicorn", "anyio"})
OF_AGENTS = frozenset(
    {"pydantic", "watchroom.features.sessions.runtime", "watchroom.agents.clients.attendant"}
)
OF_PROGRAMS = frozenset(
    {f"watchroom.features.sessions.runtime.{name}" for name in ("agent", "chat_agent", "runtime", "sessions")}
)
OF_WORKSPACES = frozenset({"asyncio", "sqlite3", "watchroom.kernel.journal", "watchroom.workspace"})
# psycopg imports asyncio.
OF_JOURNAL_ON_A_SERVER = frozenset({"psycopg", "asyncio"})

EVENT = {"hook_event_name": "UserPromptSubmit", "session_id": "1" * 8, "cwd": "/project", "prompt": "Go on."}

PRINT_LOADED = "import sys; from watchroom_cli.main import main; main(sys.argv[1:]); print(*sys.modules)"


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        ("--version", OF_SCREENS | OF_SERVERS | OF_AGENTS | OF_WORKSPACES),
        ("--help", OF_SCREENS | OF_SERVERS | OF_AGENTS | OF_WORKSPACES),
        ("show {} agents", OF_SCREENS | OF_SERVERS | OF_AGENTS | {"asyncio"}),
        ("wait {} alice --until idle", OF_SCREENS | OF_SERVERS | OF_AGENTS | {"asyncio"}),
        ("events {} --json", OF_SCREENS | OF_SERVERS | OF_AGENTS | {"asyncio"}),
        ("attach claude {} --agent alice", OF_SCREENS | OF_SERVERS | OF_AGENTS),
        ("answer {} 1", OF_SCREENS | OF_SERVERS),
        # The file watcher imports anyio.
        ("demo --headless --for 0.01", OF_SCREENS | OF_SERVERS - {"anyio"}),
        (
            "hook {} --agent alice",
            OF_SCREENS | OF_SERVERS | OF_PROGRAMS | {"watchroom.agents.clients.attendant"},
        ),
    ],
    ids=lambda each: each.partition(" ")[0] if isinstance(each, str) else "",
)
def test_a_command_loads_only_what_it_uses(
    root: Path, journal_name: str, arguments: str, unused: frozenset[str]
) -> None:
    Workspace.open(root, agents=["alice"]).close()
    command = [sys.executable, "-c", PRINT_LOADED, *arguments.format(root).split()]
    given = json.dumps(EVENT) if arguments.startswith("hook") else ""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "watchroom_cli.commands" in loaded
    used = OF_JOURNAL_ON_A_SERVER if journal_name == "postgres" else frozenset()
    assert not loaded & (unused - used)
