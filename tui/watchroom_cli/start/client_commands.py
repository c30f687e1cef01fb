"""The names of the clients that can be started, as commands. The records of clients are slow to load."""

from __future__ import annotations

from typing import Final

CLIENT_COMMANDS: Final = ("claude", "codex", "opencode")
