"""The command tree: add, list and remove the working trees of a repository."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from watchroom.features.trees.own_trees import AddedTree, TreeListing
from watchroom.features.trees.tree_removal import Obstacle, RemovalPlan, is_final
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import refuse_agents
from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table
from watchroom_cli.start.own_tree import (
    caller_of,
    is_failed,
    join_names,
    open_repository,
    print_added,
    shown_progress,
)

if TYPE_CHECKING:
    from watchroom.agents.clients.tree_agents import AgentAtWork


def declare_tree(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=("add", "list", "remove"), help=texts("cli.tree.what"))
    # A name may look like a workspace, so the repository is an option here.
    parser.add_argument("name", nargs="?", metavar="NAME", help=texts("cli.tree.name"))
    parser.add_argument("--from", dest="start", metavar="REF", help=texts("cli.tree.from"))
    parser.add_argument("--restore", action="store_true", help=texts("cli.tree.restore"))
    parser.add_argument("--force", action="store_true", help=texts("cli.tree.force"))
    parser.add_argument("--dir", help=texts("cli.tree.dir"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_tree(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if the setup command failed, or the tree was not removed."""
    _check(args, texts)
    folder = os.path.abspath(args.dir or os.getcwd())
    with open_repository(folder, args.language, texts) as workspace:
        if args.action == "list":
            return _list(workspace, args, texts)
        if args.action == "add":
            return _add(workspace, folder, args, texts)
        refuse_agents(workspace.root)
        return _remove(workspace, args, texts)


def _check(args: Namespace, texts: Catalogue) -> None:
    """Raise `WrongUsage` if the options do not fit the action."""
    is_add, is_remove = args.action == "add", args.action == "remove"
    if (args.action != "list") != bool(args.name):
        raise WrongUsage(texts("cli.tree.usage"))
    if ((args.start or args.restore) and not is_add) or (args.force and not is_remove):
        raise WrongUsage(texts("cli.tree.usage"))


# Add


def _add(workspace: Workspace, folder: str, args: Namespace, texts: Catalogue) -> int:
    command = workspace.config.trees.setup
    with shown_progress(command, texts) as listeners:
        added = workspace.own_trees.add(
            caller_of(workspace),
            args.name,
            folder,
            args.start or "",
            restore=args.restore,
            listeners=listeners,
        )
    if args.json:
        print_json(_added_as_json(added), indent=2)
        return int(is_failed(added))
    tree = added.tree
    values = {"name": sanitize(tree.name), "folder": sanitize(tree.folder), "branch": sanitize(tree.branch)}
    print(texts("cli.tree.added", **values))
    if tree.ports is not None:
        last = tree.ports.first + tree.ports.size - 1
        print(texts("cli.tree.ports", first=tree.ports.first, last=last))
    print_added(added, command, texts)
    print(texts("cli.tree.next", name=sanitize(tree.name)))
    return int(is_failed(added))


def _added_as_json(added: AddedTree) -> dict[str, Json]:
    tree, included, setup = added.tree, added.included, added.setup
    return {
        "name": tree.name,
        "folder": tree.folder,
        "branch": tree.branch,
        "tree": tree.id,
        "first_port": tree.ports.first if tree.ports else None,
        "ports": tree.ports.size if tree.ports else 0,
        "cloned": added.cloned,
        "copied": [*included.copied],
        "linked": [*included.linked],
        "left_out": [*included.left_out],
        "restored": [*added.restored],
        "setup": None if setup is None else {"status": setup.status, "seconds": round(setup.seconds, 3)},
    }


# List


def _list(workspace: Workspace, args: Namespace, texts: Catalogue) -> int:
    trees = workspace.own_trees
    found = trees.list_trees(_find_agents(workspace))
    if args.json:
        print_json({"shallow": trees.is_shallow, "trees": [_tree_as_json(each) for each in found]}, indent=2)
        return 0
    for line in format_table([_tree_as_entry(each, texts) for each in found], texts):
        print(line)
    if trees.is_shallow:
        print(texts("cli.tree.shallow"), file=sys.stderr)
    return 0


def _find_agents(workspace: Workspace) -> list[AgentAtWork]:
    # Slow to load, and not needed to add a tree.
    from watchroom.agents.clients.tree_agents import find_agents_at_work

    return find_agents_at_work(workspace)


def _tree_as_entry(tree: TreeListing, texts: Catalogue) -> dict[str, Json]:
    standing = tree.standing
    words = [texts(f"cli.tree.state.{each}") for each in tree.words]
    if tree.place.is_main:
        words.insert(0, texts("cli.tree.state.main"))
    return {
        "name": tree.name,
        "branch": tree.place.branch,
        "agents": ", ".join(tree.agents),
        "ahead": standing.ahead if standing else None,
        "behind": standing.behind if standing else None,
        "changed": tree.changed,
        "conflicts": ", ".join(f"{len(each.paths)} {each.name}" for each in tree.conflicts),
        "state": ", ".join(words) or texts("cli.tree.state.ready"),
        "folder": tree.place.folder,
    }


def _tree_as_json(tree: TreeListing) -> dict[str, Json]:
    place, standing, ports = tree.place, tree.standing, tree.ports
    return {
        "name": tree.name,
        "folder": place.folder,
        "branch": place.branch,
        "head": place.head,
        "tree": place.id,
        "main": place.is_main,
        "agents": [*tree.agents],
        "target": standing.target if standing else None,
        "ahead": standing.ahead if standing else None,
        "behind": standing.behind if standing else None,
        "changed": tree.changed,
        "conflicts": [
            {"name": each.name, "tree": each.id, "paths": [*each.paths]} for each in tree.conflicts
        ],
        "state": [*tree.words],
        "first_port": ports.first if ports else None,
        "ports": ports.size if ports else 0,
    }


# Remove


def _remove(workspace: Workspace, args: Namespace, texts: Catalogue) -> int:
    trees = workspace.own_trees
    plan = trees.plan_removal(args.name, _find_agents(workspace))
    refused = [each for each in plan.obstacles if not args.force or is_final(each.kind)]
    if refused:
        if args.json:
            print_json({"removed": False, **_plan_as_json(plan)}, indent=2)
        else:
            print_refused(plan, refused, texts)
        return 1
    done = trees.remove(caller_of(workspace), plan, force=args.force)
    if args.json:
        print_json({"removed": True, "kept_branch": done.kept or None, **_plan_as_json(plan)}, indent=2)
        return 0
    name = sanitize(plan.name)
    branch = sanitize(done.kept or plan.place.branch)
    key = "cli.tree.removed" if branch else "cli.tree.removed_detached"
    print(texts(key, name=name, branch=branch))
    if plan.uncommitted:
        values = {"count": len(plan.uncommitted), "names": join_names(plan.uncommitted, texts), "name": name}
        print(texts("cli.tree.recorded", **values))
    if plan.disposable:
        print(texts("cli.tree.disposed", names=join_names(plan.disposable, texts)))
    return 0


def print_refused(plan: RemovalPlan, refused: Sequence[Obstacle], texts: Catalogue) -> None:
    """Print the obstacles to the removal of a tree on standard error."""
    print(texts("cli.tree.kept", name=sanitize(plan.name)), file=sys.stderr)
    values = {"name": sanitize(plan.name), "folder": sanitize(plan.place.folder)}
    for each in refused:
        names = join_names(each.names, texts)
        print(f"  {texts(f'cli.tree.obstacle.{each.kind}', names=names, **values)}", file=sys.stderr)
    if not any(is_final(each.kind) for each in refused):
        print(texts("cli.tree.insist", **values), file=sys.stderr)


def _plan_as_json(plan: RemovalPlan) -> dict[str, Json]:
    return {
        "name": plan.name,
        "branch": plan.place.branch,
        "folder": plan.place.folder,
        "obstacles": [{"kind": each.kind, "names": [*each.names]} for each in plan.obstacles],
        "uncommitted": [*plan.uncommitted],
        "disposable": [*plan.disposable],
    }
