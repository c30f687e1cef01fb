"""The entries in a client's files by which its agent works in a workspace: built, found and removed. Pure."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
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
_AGENT: Final = "--agent"
_STRICT: Final = "--strict"
_PROGRAM: Final = re.compile(r"(?:watchroom|watchroom_tui\.cli)")
"""What the program of a hook or a server is called."""
HOOK_SECONDS: Final = 3600
"""So long a client waits for a hook that may hold a call."""
CLAUDE_SETTINGS: Final = ".claude/settings.local.json"
"""The settings of one person, which a project does not share."""
_SHOWN: Final = ("SessionStart", "UserPromptSubmit")
"""The events at which a missing program is reported to the person."""
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


class AttachedAs(NamedTuple):
    """What an entry of ours is for: one of ``agents`` of the workspace at ``root`` for each client.
    ``is_strict``: a call that nobody could look at is not made."""

    root: str
    agents: tuple[str, ...]
    is_strict: bool = False


class HookProgram(NamedTuple):
    """How hooks are run.

    - ``program``: how ``watchroom`` is called, by absolute paths
    - ``before``: the words in front of it, which answer more quickly
    - ``files``: the files that both need
    - ``missing``: what a person reads if one of these is not there
    """

    program: Sequence[str]
    before: Sequence[str] = ()
    files: Sequence[str] = ()
    missing: str = ""


def build_configuration(client: Client, hook: HookProgram, attached: AttachedAs) -> ClientConfiguration:
    """Return what ``client`` needs to work as ``attached`` says: the server, and the hooks."""
    root, agents, is_strict = attached
    named = [word for agent in agents for word in (_AGENT, agent)]
    more = [*named, "--client", client, *([_STRICT] if is_strict else [])]
    command, *words = hook.program
    server: dict[str, Json] = {"command": command, "args": [*words, "mcp", root, *more]}
    called = shlex.join([*hook.before, *hook.program, "hook", root, *more])
    events = _CLAUDE_EVENTS if client == "claude" else _CODEX_EVENTS
    own: dict[str, Json] = {}
    for event, seconds in events.items():
        line = _hook_line(hook, called, event, is_strict)
        own[event] = [{"hooks": [_hook(line, seconds, event, client, is_strict)]}]
    hooks: dict[str, Json] = {"hooks": own}
    mark: dict[str, Json] = {AGENT_VARIABLE: format_mark(agents)}
    if client == "claude":
        servers: dict[str, Json] = {"mcpServers": {SERVER: server}}
        return ClientConfiguration({".mcp.json": servers, CLAUDE_SETTINGS: {"env": mark, **hooks}}, {})
    tables: dict[str, Json] = {SERVERS: {SERVER: server}, "shell_environment_policy": {"set": mark}}
    return ClientConfiguration({".codex/hooks.json": hooks}, {".codex/config.toml": tables})


def format_mark(agents: Sequence[str]) -> str:
    """Return the value of `AGENT_VARIABLE` for the commands of a client that works as one of ``agents``."""
    return ",".join(agents)


def parse_mark(mark: str) -> list[str]:
    """Return the agents of which one has started a process with ``mark``."""
    return mark.split(",")


def client_files(client: Client) -> tuple[str, ...]:
    """Return the files of ``client`` that may have entries of ours, by their paths from its project's folder:
    those of earlier versions, too."""
    if client == "claude":
        return (".mcp.json", CLAUDE_SETTINGS, ".claude/settings.json")
    return (".codex/hooks.json", ".codex/config.toml")


def _hook_line(hook: HookProgram, called: str, event: str, is_strict: bool) -> str:
    """Return the line that the client gives a shell. If a program is gone it says so, and nothing else would:
    a client goes on after a hook that fails."""
    if not hook.files:
        return called
    there = " && ".join(f"[ -r {shlex.quote(each)} ]" for each in hook.files)
    missing = f"echo {shlex.quote(hook.missing)} >&2; exit 1"
    if is_strict and event in HOLDING:
        missing = f"echo {shlex.quote(hook.missing)} >&2; exit 2"
    elif event in _SHOWN:
        said = json.dumps({"systemMessage": hook.missing})
        missing = f"echo {shlex.quote(said)}"
    return f"if {there}; then exec {called}; fi; {missing}"


def find_attached(entry: Json) -> AttachedAs | None:
    """Return whom ``entry``, a hook or a server of a client's configuration, is for; None if it is not
    ours."""
    if not isinstance(entry, Mapping):
        return None
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return None
    if isinstance(arguments, list):
        words, verb = [command, *(each for each in arguments if isinstance(each, str))], "mcp"
    else:
        try:
            words, verb = shlex.split(command.replace("; fi;", " ; fi;")), "hook"
        except ValueError:
            return None
    for at, word in enumerate(words[:-4]):
        is_program = _PROGRAM.fullmatch(word.rpartition("/")[2]) is not None
        if is_program and words[at + 1] == verb and words[at + 3] == _AGENT:
            options = words[at + 3 :]
            agents = [
                agent for name, agent in zip(options[::2], options[1::2], strict=False) if name == _AGENT
            ]
            return AttachedAs(words[at + 2], tuple(agents), _STRICT in options)
    return None


def find_entries(configuration: Mapping[str, Json]) -> list[AttachedAs]:
    """Return whom the entries of ours in a client's ``configuration`` are for."""
    found = [find_attached(_object(configuration, name).get(SERVER)) for name in ("mcpServers", SERVERS)]
    for groups in _object(configuration, "hooks").values():
        for group in groups if isinstance(groups, list) else []:
            own = group.get("hooks") if isinstance(group, Mapping) else None
            found += [find_attached(each) for each in (own if isinstance(own, list) else [])]
    return [each for each in found if each is not None]


def _object(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


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


def remove_entries(existing: Json) -> dict[str, Json]:
    """Return ``existing`` without what `build_configuration` adds, for any agent, and without objects and
    lists that become empty. Raises ValueError if it is not what a client reads."""
    if not isinstance(existing, Mapping):
        raise ValueError("no object")
    marks = {format_mark(each.agents) for each in find_entries(existing)}
    result = dict(existing)
    for name, value in existing.items():
        left: Json = value
        if name == "hooks" and isinstance(value, Mapping):
            events = {event: _without_ours(groups) for event, groups in value.items()}
            left = {event: groups for event, groups in events.items() if groups or not value[event]}
        elif name in ("mcpServers", SERVERS) and isinstance(value, Mapping):
            left = {own: each for own, each in value.items() if own != SERVER or find_attached(each) is None}
        elif name == "env" and isinstance(value, Mapping):
            left = {own: each for own, each in value.items() if own != AGENT_VARIABLE or each not in marks}
        if left or not value:
            result[name] = left
        else:
            del result[name]
    return result


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
        others = [each for each in own if find_attached(each) is None]
        if others or not own:
            kept.append({**group, "hooks": others})
    return kept


def remove_tables(text: str) -> str:
    """Return ``text``, TOML, without the tables that `build_configuration` adds; comments and all else stay.
    Raises ValueError for a text that is not TOML."""
    known = tomllib.loads(text)
    attached = find_attached(_object(known, SERVERS).get(SERVER))
    if attached is None:
        return text
    left = _cut_table(text, f"[{SERVERS}.{SERVER}]")
    header = "[shell_environment_policy.set]\n"
    mark = f'{header}{AGENT_VARIABLE} = "{format_mark(attached.agents)}"\n'
    at = left.find(mark)
    if at < 0:
        return left
    # Other variables may follow: then the table stays.
    shorter = _cut(left, at, at + len(mark))
    values = _object(_object(tomllib.loads(left), "shell_environment_policy"), "set")
    return shorter if len(values) == 1 else left.replace(mark, header)


def _cut_table(text: str, header: str) -> str:
    """``text`` without the table of the ``header``, up to the next one."""
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if line.strip() == header), None)
    if begin is None:
        raise ValueError(f"{header} is written in another way")
    following = range(begin + 1, len(lines))
    end = next((at for at in following if lines[at].lstrip().startswith(("[", "#"))), len(lines))
    while end > begin + 1 and not lines[end - 1].strip():
        end -= 1
    return _cut(text, sum(map(len, lines[:begin])), sum(map(len, lines[:end])))


def _cut(text: str, begin: int, end: int) -> str:
    """``text`` without what is between, and without the blank line before that."""
    before = text[:begin]
    return (before[:-1] if before.endswith("\n\n") else before) + text[end:]


def _hook(command: str, seconds: int, event: str, client: Client, is_strict: bool) -> dict[str, Json]:
    entry: dict[str, Json] = {"type": "command", "command": command, "timeout": seconds}
    if client == "claude" and event == "Stop":
        # It waits beside the idle client, and wakes the agent when something comes for it.
        entry["asyncRewake"] = True
    elif client == "claude" and is_strict and event in HOLDING:
        entry["onFailure"] = "block"
    return entry
