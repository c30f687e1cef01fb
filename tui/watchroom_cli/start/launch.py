"""The commands named after clients: start a client in this terminal, supervised."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Final, NoReturn

from watchroom.agents.clients import client_program
from watchroom.agents.clients.adapter import LaunchSupport
from watchroom.agents.clients.launch import Launch, build_launch, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue
from watchroom.texts import catalogue as core_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.command import own_program
from watchroom_cli.start.hook_program import hook_program
from watchroom_cli.start.repository import find_start, make_workspace

_START_SECONDS: Final = 10.0
"""Timeout for the start of the service."""


def declare_client(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=texts("cli.argument.client_words"))


def run_client(args: Namespace, texts: Catalogue) -> int:
    """Replace this process with the client that ``args.command`` names. Raises `WrongUsage`,
    `WatchroomError`, OSError."""
    name: str = args.command
    support = LAUNCHED_CLIENTS[name]
    given: list[str] = args.arguments
    program = shutil.which(support.program)
    if program is None:
        values = {"title": support.title, "program": support.program, "install": support.install}
        raise WrongUsage(texts("cli.launch.missing", **values))
    if not support.starts_session(given):
        _become(program, Launch(tuple(given), {}, {}))
    start = find_start(os.getcwd())
    if start is None:
        raise WrongUsage(texts("cli.launch.no_repository"))
    root = start.root
    launch = _build(name, support, root, args, texts)
    if not is_workspace(root):
        make_workspace(root, args.language)
    write_files(launch.files)
    folder = root if start.place is None else start.place.main
    supervised = texts(
        "cli.launch.supervised", title=support.title, folder=sanitize(folder), root=sanitize(root)
    )
    print(supervised, file=sys.stderr)
    if f"cli.launch.next_{name}" in texts:
        print(texts(f"cli.launch.next_{name}"), file=sys.stderr)
    try:
        _start_service(root)
    except (OSError, ValueError) as error:
        # Hooks start a service later, or work without one.
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        print(texts("cli.launch.no_service", reason=sanitize(reason)), file=sys.stderr)
    _become(program, launch)


def _build(name: str, support: LaunchSupport, root: str, args: Namespace, texts: Catalogue) -> Launch:
    hook = hook_program(root, name, core_texts(args.language))
    runtime = client_program.make_runtime_folder()
    try:
        return build_launch(name, support, hook, root, runtime, args.arguments, os.environ)
    except ValueError as error:
        raise WrongUsage(texts("cli.launch.settings", option=str(error))) from error


def _start_service(root: str) -> None:
    """Start a service if none runs, and open the workspace at ``root`` in it. Raises OSError, ValueError."""
    with client_program.connect([*own_program()], _START_SECONDS) as connection:
        # The answer is not read, because the first hook comes later than the workspace is open.
        connection.sendall(client_program.request("GET", "/use", [("root", root)]))


def _become(program: str, launch: Launch) -> NoReturn:
    """Execute ``program`` in place of this one, with the default signal handlers of a shell."""
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(ValueError):
        # Python ignores SIGPIPE, and executed programs inherit that.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    environment = {**os.environ, **launch.environment}
    os.execve(program, [program, *launch.arguments], environment)  # noqa: S606  # the client
