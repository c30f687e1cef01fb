"""Builds, finds and removes the entries in a client's configuration files that attach it to a workspace.
Pure."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.agents.clients.adapter import HookSupport, Table
from watchroom.agents.clients.client_program import SILENCE_SECONDS, request_target
from watchroom.agents.clients.hook_answers import HOLDING, PROMPT, START
from watchroom.agents.clients.json_fields import merge_configuration
from watchroom.agents.clients.registry import hooks_of
from watchroom.model import Json

SERVER: Final = "watchroom"
"""The name of Watchroom's server among a client's MCP servers."""
AGENT_VARIABLE: Final = "WATCHROOM_AGENT"
"""The environment variable of a client's commands that contains its agent. See `format_mark`."""
_UNNAMED: Final = "*"
_CLIENT: Final = "--client"
_AGENT: Final = "--agent"
_STRICT: Final = "--strict"
_PROGRAM: Final = re.compile(r"(?:watchroom|watchroom_tui\.cli)")
"""Matches the program of a hook or a server."""
_SHOWN: Final = (START, PROMPT)
"""The events at which a missing program is reported to the person."""


class ClientConfiguration(NamedTuple):
    """The contents of a client's files, by their paths from the project's folder: JSON objects, and TOML
    tables."""

    json: Mapping[str, Mapping[str, Json]]
    toml: Mapping[str, Mapping[str, Json]]


class AttachedAs(NamedTuple):
    """The purpose of an entry of Watchroom.

    - ``root``: the folder of the workspace
    - ``agents``: each client works as one of these agents; empty: as an agent named by the service
    - ``is_strict``: whether a call that could not be checked is refused
    """

    root: str
    agents: tuple[str, ...]
    is_strict: bool = False


class HookProgram(NamedTuple):
    """The programs that run hooks.

    - ``program``: the words that call ``watchroom``, with absolute paths
    - ``before``: the words before ``program`` that turn it into the small program for hooks and relays
    - ``files``: the files that both programs need
    - ``missing``: the text for a person if one of these files is missing
    - ``curl``, ``socket``: the paths of curl(1) and of the service's socket. Hooks first try curl, because it
      starts three times as fast. Empty if there is no curl
    - ``timeout``: the words that call timeout(1) before a command, empty if it is not installed
    - ``common``: the hooks act only in working trees of the repository with this common git folder; empty:
      everywhere. Used for files that a client reads in every folder
    """

    program: Sequence[str]
    before: Sequence[str] = ()
    files: Sequence[str] = ()
    missing: str = ""
    curl: str = ""
    socket: str = ""
    timeout: Sequence[str] = ()
    common: str = ""


class ClientEntries(NamedTuple):
    """The entries that a client needs to work as an agent.

    - ``server``: the entry of Watchroom's MCP server
    - ``mark``: the value of `AGENT_VARIABLE` for the agent's commands
    - ``hooks``: for each event, its groups of hooks
    """

    server: Mapping[str, Json]
    mark: str
    hooks: Mapping[str, Json]


def build_entries(client: str, hook: HookProgram, attached: AttachedAs) -> ClientEntries:
    """Return the entries that ``client`` needs to work as ``attached`` describes."""
    support = hooks_of(client)
    root, agents, is_strict = attached
    named = [word for agent in agents for word in (_AGENT, agent)]
    more = [*named, _CLIENT, client, *([_STRICT] if is_strict else [])]
    command, *words = (*hook.before, *hook.program)
    called = shlex.join([*hook.before, *hook.program, "hook", root, *more])
    hooks: dict[str, Json] = {}
    asked = request_target(
        "/hook", [("root", root), *(("agent", each) for each in agents), ("client", client)]
    )
    for event, seconds in support.events.items():
        run = f"exec {called}"
        if hook.curl and event not in support.needs_status:
            run = _curl_words(hook, called, asked, event, seconds)
        line = _only_in(hook.common) + _hook_line(hook, run, event, is_strict)
        line = support.write_line(line)
        entry: dict[str, Json] = {"type": "command", "command": line, "timeout": seconds}
        hooks[support.event_names.get(event, event)] = [
            {"hooks": [{**entry, **support.entry_fields(event, is_strict)}]}
        ]
    server: dict[str, Json] = {"command": command, "args": [*words, "mcp", root, *more]}
    if support.passes:
        server["env_vars"] = [*support.passes]
    return ClientEntries(server, format_mark(agents, client), hooks)


def build_configuration(client: str, hook: HookProgram, attached: AttachedAs) -> ClientConfiguration:
    """Return the configuration files that attach ``client`` with the options ``attached``. They contain its
    server entry, its hooks, and the variable that identifies the agent's commands.

    If no agent is named, the server entry is left out, because the repository shares its file.
    """
    support = hooks_of(client)
    entries = build_entries(client, hook, attached)
    contents: list[tuple[Table, Mapping[str, Json]]] = [
        (support.servers, {SERVER: entries.server}),
        (support.environment, {AGENT_VARIABLE: entries.mark}),
        (support.hooks, entries.hooks),
    ]
    if not attached.agents:
        own = support.hooks.file
        contents = [each for each in contents[1:] if each[0].file == own]
        if support.personal is not None:
            contents = [(Table(support.personal.name, table.names), each) for table, each in contents]
    files: dict[str, dict[str, Json]] = {}
    for table, content in contents:
        if not table.file:
            continue
        nested: dict[str, Json] = dict(content)
        for name in reversed(table.names):
            nested = {name: nested}
        files[table.file] = merge_configuration(files.get(table.file, {}), nested)
    is_toml = {name: name.endswith(".toml") for name in files}
    return ClientConfiguration(
        {name: fields for name, fields in files.items() if not is_toml[name]},
        {name: fields for name, fields in files.items() if is_toml[name]},
    )


def format_mark(agents: Sequence[str], client: str = "") -> str:
    """Return the value of `AGENT_VARIABLE` for the commands of a ``client`` that works as one of ``agents``.
    Without agents, the value is the client's name and ``*``, because the service names the agent later."""
    return ",".join(agents) or f"{client}{_UNNAMED}"


def is_unnamed(mark: str) -> bool:
    """Return whether ``mark`` belongs to commands whose agent is named by the service."""
    return mark.endswith(_UNNAMED)


def parse_mark(mark: str) -> list[str]:
    """Return the agents that a process with ``mark`` can belong to."""
    return mark.split(",")


FIND_COMMON: Final = (
    """[ ! -f "$g" ] || { IFS= read -r g <"$g"; g=${g#gitdir: }; g=${g%/worktrees/*}; }; """
    "case $g in /*) ;; *) g=$d/$g ;; esac"
)
"""Words of a shell that change ``g``, the ``.git`` of the folder ``d``, to the common git folder."""


def _only_in(common: str) -> str:
    """Return shell words that end a hook, unless it runs in a working tree of the repository with the common
    git folder ``common``. They start no process, because such a hook runs in every folder."""
    if not common:
        return ""
    find = 'd=$PWD; while [ "$d" ] && [ ! -e "$d/.git" ]; do d=${d%/*}; done; g=$d/.git'
    return f'{find}; {FIND_COMMON}; [ "$g" -ef {shlex.quote(common)} ] || exit 0; '


def _hook_line(hook: HookProgram, called: str, event: str, is_strict: bool) -> str:
    """Return the shell line for the client: ``called``, or a report that a program is missing.

    The report is needed because a client silently continues after a failed hook.
    """
    if not hook.files:
        return called.removeprefix("exec ")
    there = " && ".join(f"[ -r {shlex.quote(each)} ]" for each in hook.files)
    missing = f"echo {shlex.quote(hook.missing)} >&2; exit 1"
    if is_strict and event in HOLDING:
        missing = f"echo {shlex.quote(hook.missing)} >&2; exit 2"
    elif event in _SHOWN:
        said = json.dumps({"systemMessage": hook.missing})
        missing = f"echo {shlex.quote(said)}"
    return f"if {there}; then {called} ; exit; fi; {missing}"


class AskingWords(NamedTuple):
    """Words of a shell that ask the service with curl.

    - ``curl``: the program
    - ``folder``, ``socket``: the runtime folder, and the service's socket in it
    - ``url``: the address of the request
    - ``seconds``: the client's timeout
    - ``within``: words before a command that end it after a time, with a blank, or empty
    - ``called``: the command that answers without curl
    """

    curl: str
    folder: str
    socket: str
    url: str
    seconds: str
    within: str
    called: str


def _curl_words(hook: HookProgram, called: str, target: str, event: str, seconds: int) -> str:
    """Return the words that ask the service with curl, and run ``called`` if that fails.

    - ``target``: the target of the HTTP request
    - ``seconds``: the client's timeout
    """
    words = AskingWords(
        shlex.quote(hook.curl),
        shlex.quote(os.path.dirname(hook.socket)),
        shlex.quote(hook.socket),
        shlex.quote(f"http://w{target}"),
        str(seconds),
        f"{shlex.join(hook.timeout)} " if hook.timeout else "",
        called,
    )
    return format_asking(words, is_holding=event in HOLDING)


def format_asking(words: AskingWords, *, is_holding: bool) -> str:
    """Return the words that ask the service with curl, and run another command if that fails.

    The event is read up to the end of its line, because clients may keep the input open. An answer is printed
    only when it is complete, because a client ignores a partial answer and makes the call. A runtime folder
    of another user is not used: that user may have created it first. If somebody ends the hook, it refuses
    its call (``is_holding``).
    """
    folder = words.folder
    limits = f"--speed-limit 1 --speed-time {SILENCE_SECONDS:.0f} --max-time {words.seconds}"
    curl = f"{words.curl} -sf {limits} --unix-socket {words.socket} --data-binary @-"
    given = """printf '%s\\n' "$b\""""
    is_own = f"[ -O {folder} ] && [ ! -L {folder} ]"
    asked = f"exec 2>/dev/null; {is_own} && {given} | {curl} {words.url}"
    ask = f"""{{ o=$({asked}) && printf %s "$o"; }}"""
    again = f"{{ {given}; {words.within}cat; }} | {words.called}"
    read = f"b=$({words.within}head -n 1)"
    if not is_holding:
        return f"{read}; {ask} || {again}"
    ended = """trap 'kill $p; echo "watchroom hook: ended before it was answered" >&2; exit 2' TERM HUP"""
    return f"{read}; {ended}; {ask} & p=$!; wait $p || {{ {again} & p=$!; wait $p; }}"


def find_attached(entry: Json) -> AttachedAs | None:
    """Return the purpose of ``entry``, a hook or a server in a client's configuration; None if it is not an
    entry of Watchroom."""
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
        if is_program and words[at + 1] == verb and words[at + 3] in (_AGENT, _CLIENT):
            options = words[at + 3 :]
            agents = [
                agent for name, agent in zip(options[::2], options[1::2], strict=False) if name == _AGENT
            ]
            return AttachedAs(words[at + 2], tuple(agents), _STRICT in options)
    return None


def find_entries(configuration: Mapping[str, Json], support: HookSupport) -> list[AttachedAs]:
    """Return the purposes of Watchroom's entries in ``configuration``, a file of the client with
    ``support``."""
    found = [find_attached(_table_of(configuration, support.servers.names).get(SERVER))]
    for groups in _table_of(configuration, support.hooks.names).values():
        for group in groups if isinstance(groups, list) else []:
            own = group.get("hooks") if isinstance(group, Mapping) else None
            found += [find_attached(each) for each in (own if isinstance(own, list) else [])]
    return [each for each in found if each is not None]


def has_other_server(configuration: Mapping[str, Json], support: HookSupport) -> bool:
    """Return whether another server in ``configuration`` has the name of Watchroom's server."""
    server = _table_of(configuration, support.servers.names).get(SERVER)
    return server is not None and find_attached(server) is None


def _table_of(fields: Mapping[str, Json], names: Sequence[str]) -> Mapping[str, Json]:
    """Return the table at the path ``names``, empty if there is none."""
    for name in names:
        value = fields.get(name)
        fields = value if isinstance(value, Mapping) else {}
    return fields


def remove_entries(existing: Json, support: HookSupport, root: str = "") -> dict[str, Json]:
    """Return ``existing``, a JSON file of the client with ``support``, without Watchroom's entries for the
    workspace at ``root`` (default: any).

    Entries for all agents are removed, and also objects and lists that become empty. Raise ValueError if
    ``existing`` is not an object.
    """
    if not isinstance(existing, Mapping):
        raise ValueError("no object")

    def is_kept(entry: Json) -> bool:
        attached = find_attached(entry)
        return attached is None or root not in ("", attached.root)

    found = [each for each in find_entries(existing, support) if root in ("", each.root)]
    marks = {format_mark(each.agents) for each in found if each.agents}
    has_unnamed = any(not each.agents for each in found)

    def clean_servers(servers: Mapping[str, Json]) -> Mapping[str, Json]:
        return {own: each for own, each in servers.items() if own != SERVER or is_kept(each)}

    def is_ours(mark: Json) -> bool:
        return mark in marks or (has_unnamed and isinstance(mark, str) and is_unnamed(mark))

    def clean_environment(variables: Mapping[str, Json]) -> Mapping[str, Json]:
        return {own: each for own, each in variables.items() if own != AGENT_VARIABLE or not is_ours(each)}

    def clean_hooks(events: Mapping[str, Json]) -> Mapping[str, Json]:
        left = {event: _kept_groups(groups, is_kept) for event, groups in events.items()}
        return {event: groups for event, groups in left.items() if groups or not events[event]}

    result = _clean_table(existing, support.servers.names, clean_servers)
    result = _clean_table(result, support.environment.names, clean_environment)
    return _clean_table(result, support.hooks.names, clean_hooks)


def _clean_table(
    fields: Mapping[str, Json],
    names: Sequence[str],
    clean: Callable[[Mapping[str, Json]], Mapping[str, Json]],
) -> dict[str, Json]:
    """Return ``fields`` with the table at ``names`` cleaned, or without the table if it becomes empty. The
    client has no such table if ``names`` is empty."""
    if not names:
        return dict(fields)
    name, *rest = names
    value, result = fields.get(name), dict(fields)
    if isinstance(value, Mapping):
        left = _clean_table(value, rest, clean) if rest else clean(value)
        if left or not value:
            result[name] = left
        else:
            del result[name]
    return result


def _kept_groups(groups: Json, is_kept: Callable[[Json], bool]) -> Json:
    """Return an event's groups with the hooks for which ``is_kept`` is true. Groups that become empty are
    left out."""
    if not isinstance(groups, list):
        return groups
    kept: list[Json] = []
    for group in groups:
        own = group.get("hooks") if isinstance(group, Mapping) else None
        if not isinstance(group, Mapping) or not isinstance(own, list):
            kept.append(group)
            continue
        others = [each for each in own if is_kept(each)]
        if others or not own:
            kept.append({**group, "hooks": others})
    return kept


def remove_tables(text: str, support: HookSupport) -> str:
    """Return ``text``, a TOML file of the client with ``support``, without Watchroom's tables.

    Comments and all other content stay. Raise ValueError if ``text`` is not TOML.
    """
    known = tomllib.loads(text)
    attached = find_attached(_table_of(known, support.servers.names).get(SERVER))
    if attached is None:
        return text
    left = _cut_table(text, f"[{'.'.join((*support.servers.names, SERVER))}]")
    header = f"[{'.'.join(support.environment.names)}]\n"
    mark = f'{header}{AGENT_VARIABLE} = "{format_mark(attached.agents)}"\n'
    at = left.find(mark)
    if at < 0:
        return left
    shorter = _cut(left, at, at + len(mark))
    # A table with other variables stays.
    is_alone = len(_table_of(tomllib.loads(left), support.environment.names)) == 1
    return shorter if is_alone else left.replace(mark, header)


def _cut_table(text: str, header: str) -> str:
    """Return ``text`` without the table of ``header``, up to the next table."""
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
    """Return ``text`` without the characters from ``begin`` to ``end`` and the blank line before them."""
    before = text[:begin]
    return (before[:-1] if before.endswith("\n\n") else before) + text[end:]
