"""The commands mcp and token: serve agents over the Model Context Protocol, and manage their tokens."""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from watchroom.agents.clients.registry import HOOKED_CLIENTS
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.validation import check_human_name
from watchroom.workspace import Workspace
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import name_of_this_person, refuse_agents, unlock_key
from watchroom_cli.arguments.port import listen
from watchroom_cli.arguments.workspace_argument import absolute_workspace, add_workspace_argument
from watchroom_cli.command import add_utc_argument, collector_paused, isolated_program, own_program

DAY = 86_400.0


def declare_mcp(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--agent", metavar="ID", action="append", default=[], help=texts("cli.argument.mcp_agent")
    )
    who.add_argument("--http", metavar="PORT", type=int, help=texts("cli.argument.mcp_http"))
    parser.add_argument("--client", choices=HOOKED_CLIENTS, help=texts("cli.argument.mcp_client"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.hook_strict"))
    parser.add_argument("--toolsets", help=texts("cli.argument.mcp_toolsets"))
    parser.add_argument(
        "--ask", action="append", default=[], metavar="TOOL", help=texts("cli.argument.mcp_ask")
    )


def run_mcp(args: Namespace, texts: Catalogue) -> int:
    with collector_paused():
        from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS, all_tools, all_toolsets

    toolsets: Sequence[str] = (
        DEFAULT_SERVER_TOOLSETS if args.toolsets is None else tuple(args.toolsets.split(","))
    )
    if unknown := set(toolsets) - set(all_toolsets()):
        known = ", ".join(all_toolsets())
        raise WrongUsage(texts("cli.tools.unknown", given=", ".join(sorted(unknown)), known=known))
    if unknown := set(args.ask) - all_tools().keys():
        raise WrongUsage(texts("cli.mcp.no_tool", given=", ".join(sorted(unknown))))
    if args.http is None and not args.agent and args.client is None:
        raise WrongUsage(texts("cli.mcp.no_agent"))
    if args.http is None:
        return _relay(args, texts)
    return _serve_http(args, texts)


def _serve_http(args: Namespace, texts: Catalogue) -> int:
    """Let the service serve the port until this process ends."""
    with collector_paused():
        from watchroom.serving.http import LOOPBACK, PATH
        from watchroom.serving.service.link import ServiceLink

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    root = absolute_workspace(args.dir)
    fields = [("root", root), ("port", str(args.http)), *(("ask", each) for each in args.ask)]
    fields += [] if args.toolsets is None else [("toolsets", args.toolsets)]
    listen(LOOPBACK, args.http, texts).close()
    link = ServiceLink(own_program(), "/http", fields)
    link.connect()
    print(texts("cli.mcp.serving", url=f"http://{LOOPBACK}:{args.http}{PATH}"), file=sys.stderr)
    link.run()
    return 0


def _relay(args: Namespace, texts: Catalogue) -> int:
    """Replace this process with the client's relay, which needs a seventh of the memory."""
    if args.client is None and len(args.agent) > 1:
        raise WrongUsage(texts("cli.mcp.one_agent"))
    words = [word for agent in args.agent for word in ("--agent", agent)]
    words += [] if args.client is None else ["--client", args.client]
    words += ["--strict"] if args.strict else []
    words += [] if args.toolsets is None else ["--toolsets", args.toolsets]
    words += [word for tool in args.ask for word in ("--ask", tool)]
    command = [*isolated_program(), *own_program(), "mcp", args.dir, *words]
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606  # the same program, without the libraries


def declare_token(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agent", nargs="?", help=texts("cli.argument.token_agent"))
    parser.add_argument("--days", type=float, help=texts("cli.argument.token_days"))
    parser.add_argument("--revoke", metavar="ID", help=texts("cli.argument.token_revoke"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    add_utc_argument(parser, texts)


def run_token(args: Namespace, texts: Catalogue) -> int:
    name = check_human_name(args.person or name_of_this_person())
    person = HUMAN_PREFIX + name
    if args.days is not None and not 0 < args.days <= 36_500:
        raise WrongUsage(texts("cli.token.days"))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        if args.agent is not None:
            refuse_agents(args.dir)
            if workspace.people.current().is_closed:
                unlock_key(workspace, workspace.people.current(), name, texts)
        if args.revoke is not None:
            if args.agent is None:
                raise WrongUsage(texts("cli.token.whose"))
            if not any(
                (each.agent, each.id) == (args.agent, args.revoke) for each in workspace.access.list()
            ):
                raise WrongUsage(texts("cli.token.unknown", agent=args.agent, id=sanitize(args.revoke)))
            workspace.access.revoke(person, args.agent, args.revoke)
            print(texts("cli.token.revoked", agent=args.agent, id=args.revoke))
        elif args.agent is None:
            _list(workspace, texts)
        else:
            seconds = None if args.days is None else args.days * DAY
            print(workspace.access.create(person, args.agent, seconds=seconds))
            is_person = args.agent.startswith(HUMAN_PREFIX)
            print(texts("cli.token.once_reads" if is_person else "cli.token.once"), file=sys.stderr)
    return 0


def _list(workspace: Workspace, texts: Catalogue) -> None:
    tokens = workspace.access.list()
    if not tokens:
        print(texts("cli.token.none"))
    for each in tokens:
        expires = zoned_time(each.expires) if each.expires is not None else "-"
        state = texts("cli.token.state.revoked" if each.revoked else "cli.token.state.valid")
        print(f"{each.agent}\t{each.id}\t{state}\t{zoned_time(each.row.time)}\t{expires}")
