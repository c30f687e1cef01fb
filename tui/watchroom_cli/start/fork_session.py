"""The command fork-session: continue a copy of an agent's session as a new agent, in a new working tree."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import NamedTuple

from watchroom.agents.clients.agent_claims import reserve_for_launch
from watchroom.agents.clients.launch import Launch, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.errors import UnknownAgent
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.rows import FORK_SESSION, fork_detail
from watchroom.features.sessions.service import split_session
from watchroom.features.trees.git import find_common
from watchroom.features.trees.own_trees import AddedTree
from watchroom.kernel.rules.details import get_text
from watchroom.model import HUMAN_PREFIX, Row
from watchroom.texts import Catalogue
from watchroom.validation import check_agent_id
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import name_of_this_person, refuse_agents
from watchroom_cli.start.launch import (
    build_client,
    find_program,
    find_same_folder,
    run_as,
    start_service_if_possible,
)
from watchroom_cli.start.own_tree import (
    caller_of,
    is_failed,
    join_names,
    open_repository,
    print_added,
    shown_progress,
)


class _Source(NamedTuple):
    """The session to copy: its newest step, its client, and the folder in which it began."""

    last: Row
    client: str
    folder: str


def declare_fork_session(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("agent", metavar="AGENT", help=texts("cli.fork_session.agent"))
    parser.add_argument("name", nargs="?", metavar="NAME", help=texts("cli.fork_session.name"))
    parser.add_argument("--tree", metavar="TREE", help=texts("cli.fork_session.tree"))
    parser.add_argument("--dir", help=texts("cli.tree.dir"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_fork_session(args: Namespace, texts: Catalogue) -> int:
    """Replace this process with the client. Return 1 if the setup command of the new tree failed. Raise
    `WrongUsage`, `WatchroomError`, OSError."""
    name = args.name or f"{args.agent}-fork"
    with open_repository(os.path.abspath(args.dir or os.getcwd()), args.language, texts) as workspace:
        refuse_agents(workspace.root)
        source = _find_source(workspace, args.agent, texts)
        if check_agent_id(name) in workspace.registry.current().agents:
            raise WrongUsage(texts("cli.fork_session.taken", agent=sanitize(name)))
        # First, because a failure must leave no tree.
        program, launch = _build(workspace, source, name, args, texts)
        added = _add_tree(workspace, source, args.tree or name, texts)
        if is_failed(added):
            print(texts("cli.launch.setup_failed"), file=sys.stderr)
            return 1
        person = HUMAN_PREFIX + (args.person or name_of_this_person())
        workspace.register([Agent(name)])
        detail = fork_detail(name, added.tree.id, source.last.seq)
        workspace.session_zone.note(
            *(person, FORK_SESSION, source.last.path, name, detail), base=source.last.version
        )
    os.chdir(find_same_folder(added.tree, source.folder))
    values = {"name": sanitize(name), "agent": sanitize(args.agent), "folder": sanitize(os.getcwd())}
    print(texts("cli.fork_session.done", row=source.last.seq, **values), file=sys.stderr)
    start_service_if_possible(workspace.root, texts)
    environment = {**launch.environment, **added.tree.variables, "PWD": os.getcwd()}
    return run_as(program, launch._replace(environment=environment))


def _find_source(workspace: Workspace, agent: str, texts: Catalogue) -> _Source:
    """Return the newest session of ``agent``. Raise `UnknownAgent`, `WrongUsage`."""
    known = workspace.registry.current().agents
    if agent not in known:
        raise UnknownAgent(agent=agent, known=", ".join(known) or "-")
    steps = [each for each in workspace.session_zone.heads(agent) if not is_subagent_step(each)]
    last = max(steps, key=lambda row: row.seq, default=None)
    begun = workspace.journal.version("session", last.path, 1) if last is not None else None
    client = get_text(begun.detail, "client") if begun is not None else ""
    if last is None or begun is None or not client:
        raise WrongUsage(texts("cli.fork_session.no_session", agent=sanitize(agent)))
    support = LAUNCHED_CLIENTS.get(client)
    if support is None or not support.fork:
        values = {"client": sanitize(client), "agent": sanitize(agent)}
        raise WrongUsage(texts("cli.fork_session.cannot", **values))
    folder = get_text(begun.detail, "cwd")
    common = find_common(folder) if os.path.isdir(folder) else None
    if common is None or os.path.realpath(common) != os.path.realpath(workspace.own_trees.common):
        values = {"agent": sanitize(agent), "folder": sanitize(folder)}
        raise WrongUsage(texts("cli.fork_session.no_folder", **values))
    return _Source(last, client, folder)


def _build(
    workspace: Workspace, source: _Source, name: str, args: Namespace, texts: Catalogue
) -> tuple[str, Launch]:
    """Return the program of the client, and its start as the new agent with a copy of the session."""
    support = LAUNCHED_CLIENTS[source.client]
    given = support.fork_of(split_session(source.last.path)[1])
    launch = build_client(source.client, workspace.root, given, args.language, texts, (name,))
    write_files(launch.files)
    program = find_program(support, texts)
    if support.trusts_texts:
        reserve_for_launch(workspace, name, source.client)
    return program, launch


def _add_tree(workspace: Workspace, source: _Source, name: str, texts: Catalogue) -> AddedTree:
    """Add a tree with the same files as the session's tree, and print the number of copied files."""
    command = workspace.config.trees.setup
    with shown_progress(command, texts) as listeners:
        added = workspace.own_trees.add(
            caller_of(workspace), name, source.folder, fork=True, listeners=listeners
        )
    tree = added.tree
    values = {"name": sanitize(tree.name), "folder": sanitize(tree.folder), "branch": sanitize(tree.branch)}
    print(texts("cli.tree.added", **values), file=sys.stderr)
    if added.forked is not None:
        agent = sanitize(split_session(source.last.path)[0])
        print(texts("cli.fork_session.copied", agent=agent, count=added.forked.changed), file=sys.stderr)
        if added.forked.left_out:
            names = join_names(added.forked.left_out, texts)
            print(texts("cli.fork_session.left_out", names=names), file=sys.stderr)
    print_added(added, command, texts)
    return added
