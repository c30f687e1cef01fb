"""Starts an agent of the ACP registry. Its command comes from the network, so a person allows it once."""

from __future__ import annotations

import shlex
import sys

from watchroom.agents.clients.acp_registry import choose_start
from watchroom.agents.clients.acp_registry_files import allow, is_allowed, read_index
from watchroom.agents.clients.adapter import AcpSupport
from watchroom.agents.clients.package_clients import find_client
from watchroom.features.policy.shown_commands import quote_command
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import refuse_agents
from watchroom_cli.agents.client import (
    describe_install,
    find_installed,
    find_starts,
    unknown_client,
)


def find_support(name: str, own_command: str | None, root: str, texts: Catalogue) -> AcpSupport:
    """Return how the client ``name`` is run: from the record of Watchroom or a plug-in, else from the ACP
    registry.

    - ``own_command``: the command that the person gave instead
    - ``root``: the workspace

    Raise `WrongUsage` if there is no such client, its program is not installed, or nobody allowed its
    command. Raise `AgentCannotAnswer` if a person must allow the command, but an agent runs this one.
    """
    known = find_client(name)
    if known is not None:
        if known.name != name or known.acp is None:
            raise WrongUsage(texts("cli.run.use_known", client=known.name))
        support = known.acp
        return support if own_command is None else support._replace(command=tuple(shlex.split(own_command)))
    kept = read_index()
    agent = kept.content.agents.get(name) if kept is not None else None
    if agent is None:
        raise WrongUsage(unknown_client(name, kept, texts))
    if own_command is not None:
        return AcpSupport(tuple(shlex.split(own_command)))
    starts = find_starts(agent)
    start = choose_start(starts, find_installed(starts))
    if start is None:
        ways = [describe_install(each, texts) for each in starts] or [texts("cli.client.no_start")]
        listed = "".join(f"\n- {each}" for each in ways)
        raise WrongUsage(texts("cli.run.not_installed", client=name) + listed)
    if not is_allowed(name, start.command):
        _ask(name, start.command, root, texts)
    return AcpSupport(start.command)


def _ask(name: str, command: tuple[str, ...], root: str, texts: Catalogue) -> None:
    """Ask once whether ``command`` may be run, and record a yes. Raise `WrongUsage` otherwise."""
    shown = quote_command(command)
    refuse_agents(root)
    if not sys.stdin.isatty():
        raise WrongUsage(texts("cli.run.no_terminal", client=name, command=shown))
    question = texts("cli.run.question", client=name, command=shown)
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes", "是"):
        raise WrongUsage(texts("cli.run.declined"))
    allow(name, command)
