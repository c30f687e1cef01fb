"""The command leave: stop supervising a repository, and remove Watchroom's files about the repository."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Final

from watchroom.agents.clients import client_program
from watchroom.agents.clients.agent_claims import find_working
from watchroom.agents.clients.launch import remove_files
from watchroom.agents.clients.registry import ATTACHED_CLIENTS
from watchroom.errors import NoService
from watchroom.features.trees.place import RepositoryPlace, repository_of
from watchroom.features.trees.port_blocks import PortBlocks
from watchroom.features.trees.removal import remove_traces
from watchroom.history.seal.anchors import state_folder
from watchroom.platform import detect_platform
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.terminal.session import has_terminal

from watchroom_cli.acting_person import refuse_agents
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.start.attach import detach_workspace
from watchroom_cli.start.repository import ask
from watchroom_cli.start.state_files import forget_workspace, read_workspace_id

_CLOSE_SECONDS: Final = 30.0
"""Timeout for an answer of the service, in seconds."""
_RELEASE_SECONDS: Final = 5.0
"""Max seconds until the service notices the end of clients."""
_RETRY_SECONDS: Final = 0.1


def declare_leave(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--keep", action="store_true", help=texts("cli.argument.leave_keep"))
    parser.add_argument("--yes", action="store_true", help=texts("cli.argument.leave_yes"))


def run_leave(args: Namespace, texts: Catalogue) -> int:
    place = repository_of(args.dir)
    if place is None:
        raise WrongUsage(texts("cli.leave.no_repository", root=sanitize(args.dir)))
    root = os.path.realpath(args.dir)
    refuse_agents(root)
    _check_idle(root, texts)
    folder = sanitize(place.main)
    key = "cli.leave.question_keep" if args.keep else "cli.leave.question"
    if not args.yes and has_terminal() and not ask(texts(key, folder=folder)):
        print(texts("cli.leave.stayed", folder=folder), file=sys.stderr)
        return 1
    _close(root, texts)
    for client in ATTACHED_CLIENTS:
        for path in detach_workspace(client, place, root, texts):
            print(texts("cli.detach.written", path=sanitize(str(path))))
    remove_files(client_program.runtime_folder(), root)
    if args.keep:
        print(texts("cli.leave.kept", folder=folder, root=sanitize(root)))
        return 0
    _remove(root, place, texts)
    print(texts("cli.leave.done", folder=folder))
    return 0


def _check_idle(root: str, texts: Catalogue) -> None:
    """Raise `WrongUsage` if a supervised client works in the workspace at ``root``."""
    platform = detect_platform()
    working = {each.pid: each.agent for each in find_working(root, platform)}
    try:
        status = json.loads(client_program.ask("GET", "/status", _CLOSE_SECONDS))
    except (OSError, ValueError):
        # Only claims show working clients without a service.
        status = {"workspaces": []}
    for served in status["workspaces"]:
        for each in served["clients"] if served["root"] == root else []:
            if platform.find_start(each["process"]) != 0:
                working.setdefault(each["process"], "/".join(each["agents"]) or each["client"])
    if working:
        clients = ", ".join(f"{sanitize(agent)} ({pid})" for pid, agent in sorted(working.items()))
        raise WrongUsage(texts("cli.leave.working", clients=clients))


def _close(root: str, texts: Catalogue) -> None:
    """Close the workspace at ``root`` in the service. Raise `WrongUsage`, `NoService`."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    while True:
        try:
            client_program.ask("POST", "/leave", _CLOSE_SECONDS, [("root", root)])
            return
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, PermissionError):
            # This user runs no service.
            return
        except OSError as error:
            raise NoService(reason=error.strerror or str(error)) from error
        except ValueError as error:
            if time.monotonic() > deadline:
                raise WrongUsage(texts("cli.leave.in_use")) from error
        time.sleep(_RETRY_SECONDS)


def _remove(root: str, place: RepositoryPlace, texts: Catalogue) -> None:
    """Remove the workspace and this user's files about the workspace. Raise OSError."""
    workspace = read_workspace_id(root)
    for path in remove_traces(os.path.dirname(root)):
        print(texts("cli.leave.removed", path=sanitize(path)))
    forget_workspace(root, workspace)
    PortBlocks(state_folder(), detect_platform()).clean()
