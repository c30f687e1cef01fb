"""The command run: run a client such as Claude Code as an agent of a workspace."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from typing import TextIO

from watchroom.agents.clients.package_clients import find_client
from watchroom.agents.clients.registry import ACP_CLIENTS
from watchroom.features.sessions.limits import RateLimit
from watchroom.kernel.journal import is_server_address, without_password
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.presentation.sanitize import sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import suggest_closing
from watchroom_cli.arguments.workspace_argument import absolute_workspace, add_workspace_argument
from watchroom_cli.publication import deliver_later
from watchroom_cli.start.registry_agent import find_support


def declare_run(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument(
        "client",
        metavar="CLIENT",
        help=texts("cli.argument.run_client", clients=", ".join(ACP_CLIENTS)),
    )
    add_workspace_argument(parser, texts)
    parser.add_argument("prompt", nargs="?", default="", help=texts("cli.argument.run_prompt"))
    parser.add_argument("--agent", required=True, metavar="ID", help=texts("cli.argument.run_agent"))
    parser.add_argument("--command", dest="start", help=texts("cli.argument.run_command"))
    parser.add_argument("--mode", help=texts("cli.argument.run_mode"))
    parser.add_argument(
        "--tools", choices=("both", "ours"), default="both", help=texts("cli.argument.run_tools")
    )
    parser.add_argument("--resume", default="", metavar="SESSION", help=texts("cli.argument.run_resume"))
    parser.add_argument("--once", action="store_true", help=texts("cli.argument.run_once"))


def run_run(args: Namespace, texts: Catalogue) -> int:
    from watchroom.agents.clients.acp_runner import AcpOptions, require_acp, run_acp
    from watchroom.agents.clients.events import (
        CallStarted,
        ClientEvent,
        MessageCompleted,
        SessionEnded,
        TurnFailed,
        TurnLimited,
    )
    from watchroom.errors import ClientNotStarted

    require_acp()
    root = absolute_workspace(args.dir)
    support = find_support(args.client, args.start, root, texts)
    if args.tools == "ours" and support.no_tools is None:
        raise WrongUsage(texts("cli.run.no_tools", client=args.client))
    if args.mode is not None:
        support = support._replace(mode=args.mode)
    elif find_client(args.client) is None:
        _print(texts("cli.run.may_not_ask", client=args.client), sys.stderr)
    ends: list[TurnLimited | SessionEnded] = []

    def show(event: ClientEvent) -> None:
        if isinstance(event, MessageCompleted):
            _print(event.text)
        elif isinstance(event, CallStarted):
            _print(f"→ {event.tool} {event.arguments[:200]}")
        elif isinstance(event, TurnFailed):
            _print(event.reason, sys.stderr)
        elif isinstance(event, TurnLimited):
            _print(_describe_limit(event.limit, texts), sys.stderr)
            ends.append(event)
        elif isinstance(event, SessionEnded):
            ends.append(event)

    program = shutil.which("watchroom")
    own = (program,) if program else (sys.executable, "-P", "-m", "watchroom_cli.main")
    # Other people read this command if the process dies.
    shown = without_password(root) if is_server_address(root) else root
    server = (*own, "mcp", root, "--agent", args.agent)
    options = AcpOptions(
        os.getcwd(),
        server,
        own_tools=args.tools == "both",
        once=args.once,
        resume=args.resume,
        continues=("watchroom", "run", args.client, shown, "--agent", args.agent, "--resume"),
    )
    with Workspace.open(root, create=False, scan=False) as workspace:
        workspace.registry.agent(args.agent)
        if shutil.which(support.command[0]) is None:
            key = "no_program_install" if support.install else "no_program"
            reason = texts(f"cli.run.{key}", program=support.command[0], install=support.install)
            raise ClientNotStarted(command=support.command[0], reason=reason)
        deliver_later(workspace, args.language)
        workspace.file_watcher.subscribe()
        suggest_closing(workspace, args.dir, texts)
        running = run_acp(
            workspace, args.agent, args.client, support, options, prompt=args.prompt, on_event=show
        )
        asyncio.run(running)
    end = ends[-1] if ends else None
    if isinstance(end, SessionEnded) and end.outcome == "error":
        _print(end.reason, sys.stderr)
    is_left_parked = isinstance(end, TurnLimited)
    return 1 if is_left_parked or (isinstance(end, SessionEnded) and end.outcome == "error") else 0


def _describe_limit(limit: RateLimit, texts: Catalogue) -> str:
    if limit.resets is None:
        return texts("cli.run.parked", reason=limit.text)
    return texts("cli.run.parked_until", reason=limit.text, time=local_time(limit.resets, "minutes"))


def _print(text: str, file: TextIO | None = None) -> None:
    for line in sanitize_lines(text.strip("\n")):
        print(line, file=file, flush=True)
