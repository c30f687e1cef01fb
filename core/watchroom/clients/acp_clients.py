"""The clients that speak the Agent Client Protocol, and how they are started."""

from __future__ import annotations

from typing import Final, NamedTuple


class AcpClient(NamedTuple):
    """How a client is started: its ``name``, the ``command``, and the ``mode`` in which it asks before it
    acts, empty where it always asks as it is configured to."""

    name: str
    command: tuple[str, ...]
    mode: str = ""


class AcpOptions(NamedTuple):
    """How a client is run: in the folder ``cwd``, with the command ``server`` as its MCP server (none where
    it is empty). With ``own_tools`` its own tools are left to it; ``once``: it ends after its first turn.
    ``resume`` is the id of the session that it goes on with, empty for a new one; ``continues``
    the command that does so if this process dies, without the id at its end."""

    cwd: str
    server: tuple[str, ...] = ()
    own_tools: bool = True
    once: bool = False
    resume: str = ""
    continues: tuple[str, ...] = ()


ACP_CLIENTS: Final = {
    "claude": AcpClient("claude", ("claude-agent-acp",), "default"),
    "codex": AcpClient("codex", ("codex-acp",), "read-only"),
    "opencode": AcpClient("opencode", ("opencode", "acp")),
    "gemini": AcpClient("gemini", ("gemini", "--acp"), "default"),
}
"""The clients that are known, by name."""
