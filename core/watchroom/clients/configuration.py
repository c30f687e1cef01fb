"""The configuration by which a client's agent works in a workspace: what to put into its files. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import Json

Client: TypeAlias = Literal["claude", "codex"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
SERVER: Final = "watchroom"
SERVERS: Final = "mcp_servers"
"""The name of Codex's table of servers."""
AGENT_VARIABLE: Final = "WATCHROOM_AGENT"
"""The environment variable of a client's commands that names its agent."""
_OURS: Final = re.compile(
    r"(?:.*[/ ])?watchroom'? hook .+ --agent [a-z0-9_-]+(?: --client [a-z]+(?: --strict)?)?", re.DOTALL
)
"""The command of a hook as `build_configuration` writes it, for any agent."""
HOOK_SECONDS: Final = 3600
"""So long a client waits for a hook that may hold a call."""
HOLDING: Final = ("PreToolUse", "PermissionRequest")
"""The events whose hooks may hold a call."""
_SECONDS: Final = 60
_DAY: Final = 86_400
_COMMON_EVENTS: Final[Mapping[str, int]] = {
    "SessionStart": _SECONDS,
    "UserPromptSubmit": _SECONDS,
    "PreToolUse": HOOK_SECONDS,
    "PermissionRequest": HOOK_SECONDS,
    "PostToolUse": _SECONDS,
}
_CLAUDE_EVENTS: Final[Mapping[str, int]] = {
    **_COMMON_EVENTS,
    "PostToolUseFailure": _SECONDS,
    "MessageDisplay": _SECONDS,
    "SubagentStart": _SECONDS,
    "SubagentStop": _SECONDS,
    "Stop": _DAY,
    "SessionEnd": _SECONDS,
}
"""The events that hooks tell of, and how long the client waits for each, in seconds."""
_CODEX_EVENTS: Final[Mapping[str, int]] = {
    **_COMMON_EVENTS,
    "PostModelRequest": _SECONDS,
    "Stop": _SECONDS,
    "Interrupt": 3,
    "SessionEnd": 3,
}


def hook_seconds(client: Client, event: str) -> int:
    """Return how long ``client`` waits for a hook that reports ``event``, in seconds."""
    events = _CLAUDE_EVENTS if client == "claude" else _CODEX_EVENTS
    return events.get(event, _SECONDS)


class ClientConfiguration(NamedTuple):
    """The contents of a client's files, by their paths from its project's folder: JSON objects, TOML
    tables."""

    json: Mapping[str, Mapping[str, Json]]
    toml: Mapping[str, Mapping[str, Json]]


def build_configuration(
    client: Client, command: str, root: str, agent: str, hook: Sequence[str] = (), *, is_strict: bool = False
) -> ClientConfiguration:
    """What ``client`` needs so that ``agent`` works in the workspace at ``root``: the server, and the hooks.
    ``command`` is how the program ``watchroom`` is called; ``hook`` the words that stand before it in a hook,
    which answer quicker. ``is_strict``: what nobody could look at is not done."""
    more = ["--client", client, *(["--strict"] if is_strict else [])]
    server: dict[str, Json] = {"command": command, "args": ["mcp", root, "--agent", agent, *more]}
    called = shlex.join([*hook, command, "hook", root, "--agent", agent, *more])
    events = _CLAUDE_EVENTS if client == "claude" else _CODEX_EVENTS
    own: dict[str, Json] = {
        event: [{"hooks": [_hook(called, seconds, event, client, is_strict)]}]
        for event, seconds in events.items()
    }
    hooks: dict[str, Json] = {"hooks": own}
    mark: dict[str, Json] = {AGENT_VARIABLE: agent}
    if client == "claude":
        servers: dict[str, Json] = {"mcpServers": {SERVER: server}}
        return ClientConfiguration(
            {".mcp.json": servers, ".claude/settings.json": {"env": mark, **hooks}}, {}
        )
    tables: dict[str, Json] = {SERVERS: {SERVER: server}, "shell_environment_policy": {"set": mark}}
    return ClientConfiguration({".codex/hooks.json": hooks}, {".codex/config.toml": tables})


def merge_configuration(existing: Mapping[str, Json], ours: Mapping[str, Json]) -> dict[str, Json]:
    """``existing`` with ``ours`` merged in: objects by key, lists with what they lack of ours, all else as
    ours is. Doing it again changes nothing. Raises ValueError where there is something else in place of an
    object or a list."""
    result = dict(existing)
    for key, value in ours.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            result[key] = merge_configuration(known, value)
        elif isinstance(known, list) and isinstance(value, list) and key != "args":
            result[key] = [*known, *(each for each in value if each not in known)]
        elif known is not None and isinstance(value, Mapping | list) and key != "args":
            raise ValueError(f"{key} is something else")
        else:
            result[key] = value
    return result


def remove_hooks(existing: Json) -> dict[str, Json]:
    """``existing`` without hooks of Watchroom: those of an agent that worked here before would give the new
    one what has come for the other. Raises ValueError where it is not what a client reads."""
    if not isinstance(existing, Mapping):
        raise ValueError("no object")
    hooks = existing.get("hooks")
    if not isinstance(hooks, Mapping):
        return dict(existing)
    return {**existing, "hooks": {event: _without_ours(groups) for event, groups in hooks.items()}}


def _without_ours(groups: Json) -> Json:
    """An event's groups of hooks without ours, and without groups that have nothing else."""
    if not isinstance(groups, list):
        return groups
    kept: list[Json] = []
    for group in groups:
        own = group.get("hooks") if isinstance(group, Mapping) else None
        if not isinstance(group, Mapping) or not isinstance(own, list):
            kept.append(group)
            continue
        others = [each for each in own if not _is_ours(each)]
        if others or not own:
            kept.append({**group, "hooks": others})
    return kept


def _is_ours(hook: Json) -> bool:
    command = hook.get("command") if isinstance(hook, Mapping) else None
    return isinstance(command, str) and _OURS.fullmatch(command) is not None


def _hook(command: str, seconds: int, event: str, client: Client, is_strict: bool) -> dict[str, Json]:
    entry: dict[str, Json] = {"type": "command", "command": command, "timeout": seconds}
    if client == "claude" and event == "Stop":
        # It waits beside the idle client, and wakes the agent when something comes for it.
        entry["asyncRewake"] = True
    elif client == "claude" and is_strict and event in HOLDING:
        entry["onFailure"] = "block"
    return entry
