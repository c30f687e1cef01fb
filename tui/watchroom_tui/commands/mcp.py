"""The commands mcp and token: serve agents over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Sequence

from watchroom.clients.configuration import CLIENTS
from watchroom.clients.errors import AgentCannotAnswer
from watchroom.clients.parent_agent import find_parent_agent
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.validation import check_human_name
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import add_utc_argument, collector_paused
from watchroom_tui.commands.person import name_of_this_person, unlock_key
from watchroom_tui.commands.port import listen
from watchroom_tui.commands.publication import publish_later
from watchroom_tui.commands.workspace_argument import add_workspace_argument
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.sanitize import sanitize
from watchroom_tui.usage import WrongUsage

DAY = 86_400.0


def declare_mcp(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--agent", metavar="ID", action="append", help=texts("cli.argument.mcp_agent"))
    who.add_argument("--http", metavar="PORT", type=int, help=texts("cli.argument.mcp_http"))
    parser.add_argument("--client", choices=CLIENTS, help=texts("cli.argument.mcp_client"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.hook_strict"))
    parser.add_argument("--toolsets", help=texts("cli.argument.mcp_toolsets"))
    parser.add_argument(
        "--ask", action="append", default=[], metavar="TOOL", help=texts("cli.argument.mcp_ask")
    )


def run_mcp(args: Namespace, texts: Catalogue) -> int:
    with collector_paused():
        from watchroom.serving.toolsets import DEFAULT_TOOLSETS
        from watchroom.toolbox.tool_registry import all_tools, all_toolsets

    toolsets: Sequence[str] = DEFAULT_TOOLSETS if args.toolsets is None else tuple(args.toolsets.split(","))
    if unknown := set(toolsets) - set(all_toolsets()):
        known = ", ".join(all_toolsets())
        raise WrongUsage(texts("cli.tools.unknown", given=", ".join(sorted(unknown)), known=known))
    if unknown := set(args.ask) - all_tools().keys():
        raise WrongUsage(texts("cli.mcp.no_tool", given=", ".join(sorted(unknown))))
    # Standard output is the protocol's.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        publish_later(workspace, texts)
        if args.http is None:
            if args.client is None and len(args.agent) > 1:
                raise WrongUsage(texts("cli.mcp.one_agent"))
            for agent in args.agent:
                workspace.registry.agent(agent)
            asyncio.run(_serve_client(workspace, args, toolsets))
        else:
            with collector_paused():
                from watchroom.serving.http import LOOPBACK, PATH, http_app, http_server

            listener = listen(LOOPBACK, args.http, texts)
            language = workspace.config.language
            app = http_app(workspace, language=language, toolsets=toolsets, approval_tools=args.ask)
            print(texts("cli.mcp.serving", url=f"http://{LOOPBACK}:{args.http}{PATH}"), file=sys.stderr)
            asyncio.run(http_server(app, args.http).serve([listener]))
    return 0


async def _serve_client(workspace: Workspace, args: Namespace, toolsets: Sequence[str]) -> None:
    """Serve the client that has started this process, and its hooks."""
    if args.client is None:
        serve_stdio = _load_server()
        await serve_stdio(workspace, args.agent[0], toolsets=toolsets, approval_tools=args.ask)
        return
    # The models of sessions are slow to load, and only a client with hooks has sessions.
    with collector_paused():
        from watchroom.clients.attendant import Attendant
        from watchroom.clients.processes import parent_process

    process = parent_process(workspace.platform)
    attendant = Attendant(workspace, args.agent, args.client, process, is_strict=args.strict)
    loop = asyncio.get_running_loop()
    leaving: set[asyncio.Task[None]] = set()

    async def leave() -> None:
        await attendant.leave()
        workspace.close()
        # The thread that reads standard input cannot be interrupted.
        os._exit(0)

    def begin_to_leave() -> None:
        leaving.add(loop.create_task(leave()))

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, begin_to_leave)
    async with attendant.serve():
        gone = loop.create_task(attendant.wait_gone())
        gone.add_done_callback(lambda task: None if task.cancelled() else begin_to_leave())
        try:
            # Hooks are answered before the client's first message, for which much is to be loaded.
            if not await asyncio.to_thread(_wait_for_input):
                return
            serve_stdio = await asyncio.to_thread(_load_server)
            await serve_stdio(
                workspace,
                await attendant.reserve_agent(),
                toolsets=toolsets,
                approval_tools=args.ask,
                on_request=attendant.notice_activity,
                agent_of_call=attendant.claim_agent,
            )
        finally:
            gone.cancel()


def _wait_for_input() -> bool:
    """Wait until the client says something, which nobody reads yet. Returns False where it has closed its end
    of a pipe instead."""
    poll = select.poll()
    poll.register(sys.stdin, select.POLLIN)
    return any(event & select.POLLIN for _, event in poll.poll())


def _load_server() -> Callable[..., Awaitable[None]]:
    """What serves a client; the protocol's library takes long to load."""
    with collector_paused():
        from watchroom.serving.stdio import serve_stdio

    return serve_stdio


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
        if args.agent is not None and (client := find_parent_agent(args.dir, os.environ)):
            raise AgentCannotAnswer(agent=client)
        if args.agent is not None and workspace.people.current().is_closed:
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
