"""The commands attach and detach: connect a client to a workspace."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from watchroom.agents.clients.configuration import (
    AttachedAs,
    build_configuration,
)
from watchroom.agents.clients.registry import ATTACHED_CLIENTS, hooks_of
from watchroom.features.trees.place import RepositoryPlace, find_repository, repository_of, workspace_root
from watchroom.features.trees.worktrees import find_worktrees
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue
from watchroom.texts import catalogue as core_texts
from watchroom.workspace import Workspace
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.workspace_argument import RepositoryArgument, add_workspace_argument
from watchroom_cli.start.client_files import ClientFiles, new_files
from watchroom_cli.start.hook_program import hook_program
from watchroom_cli.start.repository import make_workspace


def declare_attach(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("client", choices=ATTACHED_CLIENTS)
    add_workspace_argument(parser, texts, action=RepositoryArgument)
    parser.add_argument("--agent", metavar="ID", help=texts("cli.argument.attach_agent"))
    parser.add_argument("--project", metavar="DIR", default=".", help=texts("cli.argument.attach_project"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.attach_strict"))
    parser.add_argument("--write", action="store_true", help=texts("cli.argument.attach_write"))


def run_attach(args: Namespace, texts: Catalogue) -> int:
    place = repository_of(args.dir)
    if args.agent is None and place is None:
        raise WrongUsage(texts("cli.attach.no_agent"))
    if place is not None and not is_workspace(args.dir):
        make_workspace(args.dir, args.language)
    if args.agent is None and place is not None:
        return _attach_repository(args, place, texts)
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        agent = workspace.registry.agent(args.agent).id
        root, language = workspace.root, workspace.config.language
        is_closed = workspace.people.current().is_closed
    files = ClientFiles(Path(args.project), args.client, texts)
    there = files.find_attached(root)
    agents = there.agents if agent in there.agents else (*there.agents, agent)
    # Attaching another agent must not weaken the setting of attached agents.
    is_strict = args.strict or (there.is_strict and agents != there.agents)
    hook = hook_program(root, args.client, core_texts(language))
    wanted = build_configuration(args.client, hook, AttachedAs(root, agents, is_strict))
    if not args.write:
        for name, text in new_files(wanted).items():
            print(f"# {name}\n{text}")
        return 0
    for path in files.attach(wanted):
        print(texts("cli.attach.written", path=str(path)))
    if len(agents) > 1:
        print(texts("cli.attach.agents", agents=", ".join(agents)))
    print(texts(f"cli.attach.next_{args.client}"))
    if not is_closed:
        print(texts("cli.attach.closing", root=place_word(args.dir)))
    return 0


def _attach_repository(args: Namespace, place: RepositoryPlace, texts: Catalogue) -> int:
    """Write hooks without an agent's name into the personal files of the client. Raise `WrongUsage`,
    OSError."""
    root = os.path.realpath(args.dir)
    files = repository_files(args.client, place, texts)
    if files.find_attached(root).agents:
        raise WrongUsage(texts("cli.attach.named", client=args.client))
    # The hooks name their repository, because a client applies its personal files in every folder.
    common = os.path.realpath(place.common) if files.is_shared else ""
    hook = hook_program(root, args.client, core_texts(args.language), common)
    wanted = build_configuration(args.client, hook, AttachedAs(root, (), args.strict))
    for path in files.attach(wanted, root):
        print(texts("cli.attach.written", path=str(path)))
    print(texts(f"cli.attach.repository_{args.client}"))
    return 0


def declare_detach(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("client", choices=ATTACHED_CLIENTS)
    parser.add_argument("--agent", metavar="ID", help=texts("cli.argument.detach_agent"))
    parser.add_argument("--project", metavar="DIR", help=texts("cli.argument.attach_project"))


def run_detach(args: Namespace, texts: Catalogue) -> int:
    if args.agent is None and args.project is None:
        written = detach_repository(args.client, os.getcwd(), texts)
        if written:
            _report_detached(args.client, written, texts)
            return 0
    files = ClientFiles(Path(args.project or "."), args.client, texts)
    there = files.find_attached()
    left = tuple(each for each in there.agents if args.agent not in (None, each))
    if args.agent is not None and left == there.agents:
        key = "cli.detach.other" if left else "cli.detach.nothing"
        print(texts(key, client=args.client, agent=args.agent, agents=", ".join(left)))
        return 0
    if left:
        hook = hook_program(there.root, args.client, core_texts(args.language))
        for path in files.attach(build_configuration(args.client, hook, there._replace(agents=left))):
            print(texts("cli.attach.written", path=str(path)))
        print(texts("cli.detach.left", client=args.client, agent=args.agent, agents=", ".join(left)))
        return 0
    _report_detached(args.client, files.detach(), texts)
    return 0


def _report_detached(client: str, written: Sequence[Path], texts: Catalogue) -> None:
    for path in written:
        print(texts("cli.detach.written", path=str(path)))
    print(texts("cli.detach.done" if written else "cli.detach.nothing", client=client))


def detach_repository(client: str, folder: str, texts: Catalogue) -> list[Path]:
    """Remove the hooks without an agent's name for the repository around ``folder`` from the personal files.
    Return the changed files. Raise `WrongUsage`, OSError."""
    place = find_repository(folder)
    if place is None or not os.path.isdir(_personal_folder(client, place)):
        return []
    files = repository_files(client, place, texts)
    root = os.path.realpath(workspace_root(place.common))
    return files.detach(root) if files.is_attached(root) else []


def detach_workspace(client: str, place: RepositoryPlace, root: str, texts: Catalogue) -> list[Path]:
    """Remove all entries of ``client`` for a workspace, from its personal files and from the working trees.

    - ``place``: the repository.
    - ``root``: the workspace's folder.

    Return the changed files. Raise `WrongUsage`, OSError.
    """
    changed = detach_repository(client, place.main, texts)
    for folder in (place.main, *find_worktrees(place.main)):
        if os.path.isdir(folder):
            files = ClientFiles(Path(folder), client, texts)
            changed += files.detach(root) if files.has_entries(root) else []
    return changed


def is_attached(client: str, root: str, texts: Catalogue) -> bool:
    """Return whether ``client`` has hooks for the workspace at ``root``, in its personal files or in those of
    this folder. Raise `WrongUsage`."""
    root, here = os.path.realpath(root), os.getcwd()
    place = find_repository(here)
    if (
        place is not None
        and os.path.isdir(_personal_folder(client, place))
        and repository_files(client, place, texts).has_entries(root)
    ):
        return True
    return ClientFiles(Path(here), client, texts).has_entries(root)


def repository_files(client: str, place: RepositoryPlace, texts: Catalogue) -> ClientFiles:
    """Return the files with the hooks of ``client`` for all trees of the repository ``place``. They are the
    client's personal files if it has any."""
    support, folder = hooks_of(client), Path(_personal_folder(client, place))
    if support.personal is None:
        return ClientFiles(folder, client, texts, (support.hooks.file,))
    return ClientFiles(folder, client, texts, (support.personal.name,), is_shared=True)


def _personal_folder(client: str, place: RepositoryPlace) -> str:
    personal = hooks_of(client).personal
    if personal is None:
        return place.main
    return os.environ.get(personal.variable) or os.path.expanduser(personal.folder)
