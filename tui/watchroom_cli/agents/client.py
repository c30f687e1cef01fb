"""The command client: search the clients that can work as agents, and show what is supervised of one."""

from __future__ import annotations

import platform
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.agents.clients.acp_registry import AgentStart, RegistryAgent, list_starts, platform_name
from watchroom.agents.clients.acp_registry_files import IndexNotFetched, KeptIndex, fetch_index, read_index
from watchroom.agents.clients.adapter import AcpSupport, ClientAdapter
from watchroom.agents.clients.package_clients import client_plugins, find_client
from watchroom.agents.clients.registry import ADAPTERS
from watchroom.agents.clients.supervision import (
    ASPECTS,
    Aspect,
    supervised_by_hooks,
    supervised_by_protocol,
)
from watchroom.features.policy.shown_commands import quote_command
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table

_ACTIONS: Final = ("search", "show")
_KNOWN: Final = "watchroom"
"""The kind of start of clients that have a record in Watchroom or in a plug-in."""


class ClientWay(NamedTuple):
    """A way in which a client is supervised.

    - ``command``: the command that starts it this way
    - ``tried``: the version with which this was tried, empty for none
    - ``can``: for each aspect, what is supervised, as a text
    """

    command: str
    tried: str
    can: Mapping[Aspect, str]


def declare_client(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=_ACTIONS, help=texts("cli.argument.client_action"))
    parser.add_argument("text", nargs="?", default="", help=texts("cli.argument.client_text"))
    parser.add_argument("--update", action="store_true", help=texts("cli.argument.client_update"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_client(args: Namespace, texts: Catalogue) -> int:
    """Search or show. Return 1 if the index could not be fetched. Raise `WrongUsage`, OSError."""
    kept = _update(texts) if args.update else read_index()
    if args.update and kept is None:
        return 1
    if args.action == "search":
        _search(args, kept, texts)
        return 0
    if not args.text:
        raise WrongUsage(texts("cli.client.no_name"))
    _show(args, kept, texts)
    return 0


def _update(texts: Catalogue) -> KeptIndex | None:
    """Fetch the index. Return None and print the reason if that failed."""
    try:
        kept = fetch_index()
    except IndexNotFetched as error:
        print(texts("cli.client.not_fetched", reason=sanitize(str(error))), file=sys.stderr)
        return None
    count = len(kept.content.agents)
    print(texts("cli.client.fetched", count=count), file=sys.stderr)
    if kept.content.left_out:
        print(texts("cli.client.left_out", count=kept.content.left_out), file=sys.stderr)
    return kept


def find_starts(agent: RegistryAgent) -> list[AgentStart]:
    """Return the ways to start ``agent`` on this machine."""
    return list_starts(agent, platform_name(platform.system(), platform.machine()))


def find_installed(starts: Sequence[AgentStart]) -> dict[str, bool]:
    """Return for each program of ``starts`` whether it is installed."""
    return {each.program: shutil.which(each.program) is not None for each in starts}


def describe_install(start: AgentStart, texts: Catalogue) -> str:
    """Return the steps with which a person installs the program of ``start``."""
    if start.kind != "binary":
        return texts(f"cli.client.install.{start.kind}")
    values = {"archive": sanitize(start.archive), "program": sanitize(start.program)}
    key = "binary_checked" if start.sha256 else "binary"
    return texts(f"cli.client.install.{key}", sha256=start.sha256, **values)


# Search


def _search(args: Namespace, kept: KeptIndex | None, texts: Catalogue) -> None:
    words = args.text.casefold().split()
    known = (*ADAPTERS, *client_plugins().found.values())
    found = [_known_entry(each) for each in known if all(word in each.name for word in words)]
    if kept is not None:
        found += [
            _registry_entry(each) for each in kept.content.search(args.text) if not find_client(each.id)
        ]
    if args.json:
        print_json({"fetched": kept.fetched.isoformat() if kept else None, "clients": found}, indent=2)
        return
    for line in format_table(found, texts):
        print(line)
    if not found:
        print(texts("cli.client.none"))
    if kept is None:
        print(texts("cli.client.never_fetched"), file=sys.stderr)
    else:
        print(texts("cli.client.as_of", date=f"{kept.fetched:%Y-%m-%d}"), file=sys.stderr)


def _known_entry(adapter: ClientAdapter) -> dict[str, Json]:
    launch, acp = adapter.launch, adapter.acp
    about = launch.title if launch is not None else adapter.name
    installed = acp is not None and shutil.which(acp.command[0]) is not None
    entry: dict[str, Json] = {"client": adapter.name, "version": "", "about": about, "start": _KNOWN}
    return {**entry, "can_start": installed}


def _registry_entry(agent: RegistryAgent) -> dict[str, Json]:
    starts = find_starts(agent)
    installed = any(find_installed(starts).values())
    kinds = ", ".join(each.kind for each in starts)
    about = agent.description if len(agent.description) <= 80 else f"{agent.description[:79]}…"
    entry: dict[str, Json] = {"client": agent.id, "version": agent.version, "about": about, "start": kinds}
    return {**entry, "can_start": installed}


# Show


def _show(args: Namespace, kept: KeptIndex | None, texts: Catalogue) -> None:
    adapter = find_client(args.text)
    agent = kept.content.agents.get(args.text) if kept is not None else None
    if adapter is None and agent is None:
        raise WrongUsage(unknown_client(args.text, kept, texts))
    if adapter is not None:
        installs, ways = _find_installs(adapter, texts), list_ways(adapter, texts)
    else:
        installs, ways = {}, [other_way(args.text, texts)]
    starts = find_starts(agent) if agent is not None else []
    if args.json:
        print_json(_as_json(args.text, agent, starts, installs, ways), indent=2)
        return
    if agent is not None:
        print(f"{sanitize(agent.name)} {sanitize(agent.version)}: {sanitize(agent.description)}")
        if agent.repository:
            print(sanitize(agent.repository))
    for line in installs.values():
        print(line)
    for start in starts if adapter is None else ():
        print(texts("cli.client.start_with", kind=start.kind, command=quote_command(start.command)))
        print(f"  {describe_install(start, texts)}")
    if adapter is None and not starts:
        print(texts("cli.client.no_start"))
    for way in ways:
        print()
        tried = texts("client.tried" if way.tried else "client.not_tried", version=way.tried)
        print(f"{way.command} ({tried})")
        for aspect in ASPECTS:
            print(f"  {texts(f'client.aspect.{aspect}')}: {way.can[aspect]}")


def unknown_client(name: str, kept: KeptIndex | None, texts: Catalogue) -> str:
    """Return why no client has this ``name``."""
    if kept is None:
        known = ", ".join((*(each.name for each in ADAPTERS), *client_plugins().found))
        return texts("cli.client.unknown_never_fetched", name=sanitize(name), known=known)
    return texts("cli.client.unknown", name=sanitize(name), date=f"{kept.fetched:%Y-%m-%d}")


def list_ways(adapter: ClientAdapter, texts: Catalogue) -> list[ClientWay]:
    """Return the ways in which the client of ``adapter`` is supervised."""
    found = []
    if adapter.hooks is not None:
        can, hooks = supervised_by_hooks(adapter.hooks), adapter.hooks
        found.append(_way(f"watchroom {adapter.name}", hooks.tried, can, hooks.untried, texts))
    if adapter.acp is not None:
        can, acp = supervised_by_protocol(adapter.acp), adapter.acp
        found.append(_way(f"watchroom run {adapter.name}", acp.tried, can, acp.untried, texts))
    return found


def other_way(name: str, texts: Catalogue) -> ClientWay:
    """Return how the agent ``name`` of the registry is supervised."""
    return _way(f"watchroom run {name}", "", supervised_by_protocol(AcpSupport(())), (), texts)


def _way(
    command: str, tried: str, can: Mapping[Aspect, str], untried: Sequence[str], texts: Catalogue
) -> ClientWay:
    named = {aspect: texts(f"client.can.{value}") for aspect, value in can.items()}
    for aspect in ASPECTS:
        if tried and aspect in untried:
            named[aspect] += f" ({texts('client.not_tried')})"
    return ClientWay(command, tried, named)


def _find_installs(adapter: ClientAdapter, texts: Catalogue) -> dict[str, str]:
    """Return the commands that install the client and its adapter, each with the line that says so."""
    launch, acp = adapter.launch, adapter.acp
    found = {}
    if launch is not None and launch.install:
        found[launch.install] = texts("cli.client.install_client", command=launch.install)
    if acp is not None and acp.install and acp.install not in found:
        key = "install_adapter" if found else "install_client"
        found[acp.install] = texts(f"cli.client.{key}", program=acp.command[0], command=acp.install)
    return found


def _as_json(
    name: str,
    agent: RegistryAgent | None,
    starts: Sequence[AgentStart],
    installs: Collection[str],
    ways: Sequence[ClientWay],
) -> dict[str, Json]:
    return {
        "client": name,
        "version": agent.version if agent else None,
        "about": agent.description if agent else None,
        "install": [*installs],
        "starts": [{"kind": each.kind, "command": [*each.command]} for each in starts],
        "supervised": [
            {"command": each.command, "tried": each.tried or None, "can": dict(each.can.items())}
            for each in ways
        ],
    }
