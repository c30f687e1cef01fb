"""How a client is set up so that its agent works in a workspace: what to put into its files. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import Json

Client: TypeAlias = Literal["claude", "codex"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
SERVER: Final = "watchroom"
SERVERS: Final = "mcp_servers"
"""The table of Codex's servers."""
_WRITING: Final[Mapping[Client, str]] = {
    "claude": "Write|Edit|MultiEdit|NotebookEdit",
    "codex": "apply_patch|Edit|Write",
}


class Configuration(NamedTuple):
    """Files of a client, by their paths from its project's folder: JSON objects, or TOML tables."""

    json: Mapping[str, Mapping[str, Json]]
    toml: Mapping[str, Mapping[str, Json]]


def configuration(client: Client, command: str, root: str, agent: str) -> Configuration:
    """What ``client`` needs: our server, and our hooks. ``command`` is how ours is called."""
    server: dict[str, Json] = {"command": command, "args": ["mcp", root, "--agent", agent]}
    hook = shlex.join([command, "hook", root, "--agent", agent])
    own = {"PreToolUse": [_hook(hook, _WRITING[client])], "PostToolUse": [_hook(hook)]}
    hooks: dict[str, Json] = {"hooks": own}
    if client == "claude":
        servers: dict[str, Json] = {"mcpServers": {SERVER: server}}
        return Configuration({".mcp.json": servers, ".claude/settings.json": hooks}, {})
    return Configuration({".codex/hooks.json": hooks}, {".codex/config.toml": {SERVERS: {SERVER: server}}})


def merged(there: Mapping[str, Json], ours: Mapping[str, Json]) -> dict[str, Json]:
    """What is there with ours put in: objects by key, lists with what they lack of ours, all else as ours
    is. Doing it again changes nothing."""
    result = dict(there)
    for key, value in ours.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            result[key] = merged(known, value)
        elif isinstance(known, list) and isinstance(value, list) and key != "args":
            result[key] = [*known, *(each for each in value if each not in known)]
        else:
            result[key] = value
    return result


def _hook(command: str, matcher: str = "") -> dict[str, Json]:
    entry: dict[str, Json] = {"hooks": [{"type": "command", "command": command}]}
    return {"matcher": matcher, **entry} if matcher else entry
