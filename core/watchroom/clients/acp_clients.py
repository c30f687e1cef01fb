"""The clients that speak the Agent Client Protocol, and how they are started."""

from __future__ import annotations

from typing import Final, NamedTuple


class AcpClient(NamedTuple):
    """How a client is started: its ``name``, the ``command``, and the ``mode`` in which it asks before it
    acts, empty where it always asks as it is configured to."""

    name: str
    command: tuple[str, ...]
    mode: str = ""


ACP_CLIENTS: Final = {
    "claude": AcpClient("claude", ("claude-agent-acp",), "default"),
    "codex": AcpClient("codex", ("codex-acp",), "read-only"),
    "opencode": AcpClient("opencode", ("opencode", "acp")),
    "gemini": AcpClient("gemini", ("gemini", "--acp"), "default"),
}
"""The clients that are known, by name."""
