"""The commands named after clients: start a supervised client in this terminal."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from watchroom.agents.clients import client_program
from watchroom.agents.clients.adapter import LaunchSupport
from watchroom.agents.clients.launch import Launch, build_launch, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.features.trees.place import find_repository
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue, Language
from watchroom.texts import catalogue as core_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.command import own_program
from watchroom_cli.start.attach import is_attached
from watchroom_cli.start.hook_program import hook_program
from watchroom_cli.start.repository import find_start, make_workspace

if TYPE_CHECKING:
    from watchroom.features.trees.own_trees import OwnTree

_START_SECONDS: Final = 10.0
"""Timeout for the start of the service, in seconds."""
_TREE: Final = "--tree"
"""The option that names a working tree. It precedes the client's own arguments."""


def declare_client(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=texts("cli.argument.client_words"))


def run_client(args: Namespace, texts: Catalogue) -> int:
    """Replace this process with the client named in ``args.command``. Return 1 if the setup command of a new
    working tree failed. Raise `WrongUsage`, `WatchroomError`, OSError."""
    name: str = args.command
    support = LAUNCHED_CLIENTS[name]
    program = find_program(support, texts)
    tree, given = _take_tree(args.arguments, texts)
    if not support.starts_session(given):
        return run_as(program, Launch(tuple(given), {}, {}))
    start = find_start(os.getcwd())
    if start is None:
        raise WrongUsage(texts("cli.launch.no_repository"))
    if tree is not None and start.place is None:
        raise WrongUsage(texts("cli.tree.no_repository"))
    root = start.root
    launch = build_client(name, root, given, args.language, texts)
    if not is_workspace(root):
        make_workspace(root, args.language)
    folder = root if start.place is None else start.place.main
    own = _enter_tree(tree, args, texts) if tree is not None else None
    if tree is not None and own is None:
        return 1
    if own is not None:
        folder = own.folder
        launch = launch._replace(environment={**launch.environment, **own.variables, "PWD": os.getcwd()})
    write_files(launch.files)
    supervised = texts(
        "cli.launch.supervised", title=support.title, folder=sanitize(folder), root=sanitize(root)
    )
    print(supervised, file=sys.stderr)
    if f"cli.launch.next_{name}" in texts:
        print(texts(f"cli.launch.next_{name}"), file=sys.stderr)
    start_service_if_possible(root, texts)
    return run_as(program, launch)


def find_program(support: LaunchSupport, texts: Catalogue) -> str:
    """Return the path of a client's program. Raise `WrongUsage` if it is not installed."""
    program = shutil.which(support.program)
    if program is None:
        values = {"title": support.title, "program": support.program, "install": support.install}
        raise WrongUsage(texts("cli.launch.missing", **values))
    return program


def start_service_if_possible(root: str, texts: Catalogue) -> None:
    """Start the service (`_start_service`), or print the reason for a failure."""
    try:
        _start_service(root)
    except (OSError, ValueError) as error:
        # Hooks start a service later, or work without a service.
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        print(texts("cli.launch.no_service", reason=sanitize(reason)), file=sys.stderr)


def _take_tree(given: list[str], texts: Catalogue) -> tuple[str | None, list[str]]:
    """Return the working tree named by the option ``--tree`` (None without it), and the client's own
    arguments. Raise `WrongUsage`."""
    first = given[0] if given else ""
    if first.startswith(f"{_TREE}="):
        return first.removeprefix(f"{_TREE}="), given[1:]
    if first != _TREE:
        return None, given
    if len(given) == 1:
        raise WrongUsage(texts("cli.launch.tree"))
    return given[1], given[2:]


def _enter_tree(name: str, args: Namespace, texts: Catalogue) -> OwnTree | None:
    """Change the working directory to the working tree ``name``, in the same subfolder if it exists.

    Add the tree if it does not exist. Return None without changing the directory if its setup command failed.
    """
    # Slow to load, and needed only for a tree.
    from watchroom_cli.start.own_tree import (
        caller_of,
        is_failed,
        open_repository,
        print_added,
        shown_progress,
    )

    here = os.getcwd()
    with open_repository(here, args.language, texts) as workspace:
        command = workspace.config.trees.setup
        with shown_progress(command, texts) as listeners:
            added = workspace.own_trees.enter(caller_of(workspace), name, here, listeners)
    own = added.tree
    if added.is_new:
        values = {"name": sanitize(own.name), "folder": sanitize(own.folder), "branch": sanitize(own.branch)}
        print(texts("cli.tree.added", **values), file=sys.stderr)
        print_added(added, command, texts)
    if is_failed(added):
        print(texts("cli.launch.setup_failed"), file=sys.stderr)
        return None
    os.chdir(find_same_folder(own, here))
    return own


def find_same_folder(tree: OwnTree, here: str) -> str:
    """Return the subfolder of ``tree`` that corresponds to ``here`` in its tree, else the tree's folder."""
    place = find_repository(here)
    inner = os.path.relpath(here, place.folder) if place is not None and place.folder else os.curdir
    folder = os.path.normpath(os.path.join(tree.folder, inner))
    return folder if os.path.isdir(folder) else tree.folder


def build_client(
    name: str,
    root: str,
    given: Sequence[str],
    language: Language,
    texts: Catalogue,
    agents: Sequence[str] = (),
) -> Launch:
    """Return the start of the client ``name``, supervised in the workspace at ``root``, with the person's
    arguments ``given``. Raise `WrongUsage`.

    ``agents``: it works as one of these agents, default: as an agent named by the service.
    """
    support = LAUNCHED_CLIENTS[name]
    if support.needs_attached and not is_attached(name, root, texts):
        raise WrongUsage(texts("cli.launch.attach_first", title=support.title, client=name))
    hook = hook_program(root, name, core_texts(language))
    runtime = client_program.make_runtime_folder()
    try:
        return build_launch(name, support, hook, root, runtime, given, os.environ, agents)
    except ValueError as error:
        raise WrongUsage(texts("cli.launch.settings", option=str(error))) from error


def _start_service(root: str) -> None:
    """Start a service if none runs, and open the workspace at ``root`` in it. Raise OSError, ValueError."""
    with client_program.connect([*own_program()], _START_SECONDS) as connection:
        # Do not wait for the answer, because the workspace is open before the first hook.
        connection.sendall(client_program.request("GET", "/use", [("root", root)]))


def run_as(program: str, launch: Launch) -> NoReturn:
    """Replace this process with ``program``, with the default handler of SIGPIPE."""
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(ValueError):
        # Python ignores SIGPIPE, and executed programs inherit that.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    environment = {**os.environ, **launch.environment}
    os.execve(program, [program, *launch.arguments], environment)  # noqa: S606  # the client
