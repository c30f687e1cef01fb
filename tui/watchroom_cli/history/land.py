"""The command land: merge the commits of working trees into a branch, one tree after the other."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from watchroom.features.trees.rows import LAND
from watchroom.kernel.rules.details import get_list
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.workspace_argument import find_workspace
from watchroom_cli.command import print_json
from watchroom_cli.history.tree_argument import choose_tree, open_trees

if TYPE_CHECKING:
    from watchroom.features.trees.rows import Tree


def declare_land(parser: ArgumentParser, texts: Catalogue) -> None:
    # The trees' names may look like a workspace, so the workspace is an option here.
    parser.add_argument("trees", nargs="+", metavar="TREE", help=texts("cli.argument.land_trees"))
    parser.add_argument("--into", metavar="BRANCH", help=texts("cli.argument.land_into"))
    parser.add_argument("--check", metavar="COMMAND", help=texts("cli.argument.land_check"))
    parser.add_argument("--dir", help=texts("cli.argument.nearest"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_land(args: Namespace, texts: Catalogue) -> int:
    """Land all trees in turn. A failure of one tree does not stop the others. Return 1 if a tree did not
    land."""
    root = args.dir or find_workspace()
    if root is None:
        raise WrongUsage(texts("cli.trees.no_repository"))
    with open_trees(root, texts) as (workspace, reader):
        trees = [choose_tree(reader, each, texts) for each in dict.fromkeys(args.trees)]
        results = [land_tree(workspace, each, args, texts) for each in trees]
    if args.json:
        print_json([*results], indent=2)
    return 0 if all(map(has_landed, results)) else 1


def land_tree(workspace: Workspace, tree: Tree, args: Namespace, texts: Catalogue) -> Mapping[str, Json]:
    """Land ``tree`` with the options in ``args``, print the outcome, and return the tool's result."""
    command = workspace.config.trees.check if args.check is None else args.check
    check: list[Json] = ["/bin/sh", "-c", command] if command else []
    arguments: dict[str, Json] = {"tree": tree.id, "into": args.into, "check": check}
    person = args.person or name_of_this_person()
    result = act_as_person(workspace, person, PersonCall(LAND, arguments), language=args.language)
    name = tree.branch or tree.id
    if args.json:
        return {"name": name, **result}
    if not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
        return result
    values = {"tree": sanitize(name), "into": sanitize(str(result["into"]))}
    values |= {"commit": str(result["commit"])[:12], "status": _status(result, texts)}
    is_landed = has_landed(result)
    output = result["output"]
    if result["state"] == "check_failed" and isinstance(output, str):
        for line in sanitize_lines(output.removesuffix("\n")):
            print(line)
    print(texts(f"cli.land.{result['state']}", **values), file=sys.stdout if is_landed else sys.stderr)
    _print_paths(result, texts("cli.land.kept", **values) if is_landed else "")
    if settled := get_list(result, "settled"):
        names = ", ".join(sanitize(str(each)) for each in settled)
        print(texts("cli.land.settled", names=names))
    return result


def _print_paths(result: Mapping[str, Json], title: str) -> None:
    paths = get_list(result, "paths")
    if paths and title:
        print(title)
    for path in paths:
        print(f"  {sanitize(str(path))}")


def has_landed(result: Mapping[str, Json]) -> bool:
    """Return whether the branch has the work of a tree after a landing with this ``result``."""
    return result.get("state") in ("landed", "up_to_date")


def _status(result: Mapping[str, Json], texts: Catalogue) -> str:
    status = result.get("status")
    return texts("cli.try.timeout") if status is None else str(status)
