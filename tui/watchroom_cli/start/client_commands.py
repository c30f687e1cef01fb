"""The names of the clients that are commands. They are listed here because the clients' records are slow to
load."""

from __future__ import annotations

from typing import Final

CLIENT_COMMANDS: Final = ("claude", "codex", "opencode")
