"""The command web: serve the dashboard to a browser."""

from __future__ import annotations

import secrets
import shlex
import sys
from argparse import ArgumentParser, Namespace

from watchroom.features.trees.place import display_name
from watchroom.kernel.journal import database_name, is_server_address
from watchroom.texts import LANGUAGES, Catalogue

from watchroom_cli.arguments.port import listen
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import absolute_workspace, add_workspace_argument
from watchroom_cli.command import add_utc_argument

PORT = 8642


def declare_web(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--port", type=int, default=PORT, help=texts("cli.argument.web_port"))
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

    def on_start(url: str) -> None:
        print(texts("cli.web.serving", url=url), flush=True)

    WebDashboard(
        # exec, so that the dashboard replaces the shell as the server's child process.
        f"exec {shlex.join(command)}",
        listener,
        secrets.token_urlsafe(24),
        title=f"Watchroom · {name}",
        refusal=texts("cli.web.refusal"),
        on_start=on_start,
    ).serve()
    return 0
