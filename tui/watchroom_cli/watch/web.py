"""The command web: serve the dashboard to a browser."""

from __future__ import annotations

import secrets
import shlex
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from watchroom.errors import WatchroomError
from watchroom.features.trees.place import display_name
from watchroom.kernel.journal import database_name, is_server_address
from watchroom.texts import LANGUAGES, Catalogue
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.arguments.port import listen
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import absolute_workspace, add_workspace_argument
from watchroom_cli.command import add_utc_argument
from watchroom_cli.publication import deliver_later
from watchroom_cli.watch.watch import watch_files

if TYPE_CHECKING:
    from watchroom.serving.phone.server import PhoneServer

PORT = 8642
PHONE_PORT = 8643


def declare_web(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--port", type=int, default=PORT, help=texts("cli.argument.web_port"))
    parser.add_argument("--phone-port", type=int, default=PHONE_PORT, help=texts("cli.argument.phone_port"))
    parser.add_argument("--view", action="store_true", help=texts("cli.argument.view"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    add_utc_argument(parser, texts)


def run_web(args: Namespace, texts: Catalogue) -> int:
    from watchroom_tui.web import HOST, WebDashboard

    # Report an unreadable workspace here, and not in a browser.
    open_journal(args.dir).close()
    listener = listen(HOST, args.port, texts)
    root = absolute_workspace(args.dir)
    name = database_name(root) if is_server_address(root) else display_name(root)
    command = [sys.executable, "-P", "-m", "watchroom_cli.main", "open", root, "--alerts", "off"]
    command += ["--language", args.language]
    command += ["--as", args.person] if args.person else []
    command += ["--view"] if args.view else []
    command += ["--utc"] if args.utc else []

    with ExitStack() as stack:
        phone = None if args.view else _open_phone(args, texts, stack)

        def on_start(url: str) -> None:
            print(texts("cli.web.serving", url=url), flush=True)
            if phone is not None:
                print(texts("cli.web.phone", port=args.phone_port), flush=True)

        WebDashboard(
            # exec, so that the dashboard replaces the shell as the server's child process.
            f"exec {shlex.join(command)}",
            listener,
            secrets.token_urlsafe(24),
            title=f"Watchroom · {name}",
            refusal=texts("cli.web.refusal"),
            on_start=on_start,
            beside=nullcontext if phone is None else phone.serve,
        ).serve()
    return 0


def _open_phone(args: Namespace, texts: Catalogue, stack: ExitStack) -> PhoneServer | None:
    """Return the server of the pages to which links in alerts lead; None if the configuration has none.

    It needs the workspace, which ``stack`` closes. Print a line if the workspace cannot be opened.
    """
    from watchroom.workspace import Workspace
    from watchroom_tui.web import HOST

    try:
        workspace = Workspace.open(args.dir, create=False, scan=False)
    except (WatchroomError, OSError) as error:
        # Each page of the dashboard says more.
        reason = error.message(args.language) if isinstance(error, WatchroomError) else str(error)
        print(texts("cli.web.no_phone", reason=sanitize(reason)), file=sys.stderr)
        return None
    with ExitStack() as opened:
        opened.enter_context(workspace)
        if not workspace.config.web.public_url:
            return None
        from watchroom.serving.phone.pages import PhonePages
        from watchroom.serving.phone.server import PhoneServer

        deliver_later(workspace, args.language)
        watch_files(workspace, texts)
        server = PhoneServer(PhonePages(workspace, args.language), listen(HOST, args.phone_port, texts))
        stack.push(opened.pop_all())
        return server
