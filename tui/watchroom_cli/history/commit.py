"""The commands commit and try: commit only the work of given agents, or run a command on it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from watchroom.agents.clients.processes import find_parent_agent
from watchroom.errors import AgentCannotAnswer, InvalidBranch
from watchroom.features.trees.commits import CommitPlan
from watchroom.features.trees.reads import ChangedFile
from watchroom.features.trees.rows import COMMIT_AGENT, TRY_AGENT, CommitRecord, Tree, read_commit
from watchroom.features.trees.trials import LINKED
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters.tree_changes import (
    KIND_SIGNS,
    authors_line,
    blocked_text,
    find_changes_of,
    propose_branch,
)
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall
from watchroom_tui.terminal.session import has_terminal

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.known_names import check_actor
from watchroom_cli.arguments.workspace_argument import add_workspace_argument, find_workspace
from watchroom_cli.command import print_json
from watchroom_cli.history.tree_argument import choose_tree, open_trees

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree

_MAX_BRANCHES: Final = 100


def declare_commit(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agents", nargs="+", metavar="AGENT", help=texts("cli.argument.commit_agents"))
    parser.add_argument("-m", "--message", help=texts("cli.argument.commit_message"))
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--here", action="store_true", help=texts("cli.argument.commit_here"))
    place.add_argument("--branch", metavar="NAME", help=texts("cli.argument.commit_branch"))
    parser.add_argument("--tree", metavar="TREE", help=texts("cli.argument.tree"))
    parser.add_argument("--dry-run", action="store_true", help=texts("cli.argument.commit_dry_run"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_commit(args: Namespace, texts: Catalogue) -> int:
    agents = list(dict.fromkeys(args.agents))
    with open_trees(args.dir, texts) as (workspace, reader):
        for agent in agents:
            check_actor(workspace.journal, agent)
        tree = choose_tree(reader, args.tree, texts)
        git = reader.open_tree(tree.id)
        if git is None:
            raise WrongUsage(texts("cli.trees.unknown", given=sanitize(tree.id), known="-"))
        plan = workspace.agent_commits.plan(git, agents)
        if not args.json or args.dry_run:
            _show_plan(plan, reader.list_changes(tree.id), tree, args, texts)
        if args.dry_run:
            return 0
        if not plan.files:
            print(texts("cli.commit.nothing"), file=sys.stderr)
            return 1
        message = args.message or _ask_message(texts)
        return _commit(workspace, git, tree, plan, message, args, texts)


def _ask_message(texts: Catalogue) -> str:
    """Ask the person at the terminal for the commit message. Raise `WrongUsage`."""
    if has_terminal():
        try:
            given = input(f"{texts('cli.commit.ask')} ").strip()
        except EOFError:
            given = ""
        if given:
            return given
    raise WrongUsage(texts("cli.commit.no_message"))


def _show_plan(
    plan: CommitPlan, changes: Sequence[ChangedFile], tree: Tree, args: Namespace, texts: Catalogue
) -> None:
    if args.json:
        print_json(_plan_as_json(plan), indent=2)
        return
    for line in _plan_lines(plan, changes, tree, args, texts):
        print(line)


def _plan_lines(
    plan: CommitPlan, changes: Sequence[ChangedFile], tree: Tree, args: Namespace, texts: Catalogue
) -> Iterator[str]:
    agents = [*(plan.agents or ())]
    branch = (tree.branch or tree.head[:12]) if args.here else args.branch or propose_branch(agents)
    names = ", ".join(map(sanitize, agents))
    yield texts("cli.commit.plan", agents=names, branch=sanitize(branch), count=len(plan.files))
    known = {each.name: each for each in changes}
    for each in plan.files:
        file = known.get(each.path)
        authors = find_changes_of(file, each.authors) if file is not None else []
        sign = KIND_SIGNS[file.kind].text if file is not None else "M"
        shown = "".join(span.text for span in authors_line(authors))
        yield f"  {sign} {sanitize(each.path)}  {shown}".rstrip()
    if plan.blocked:
        yield texts("cli.commit.left_out", count=len(plan.blocked))
    for blocked in plan.blocked:
        yield f"  {sanitize(blocked.path)}  {blocked_text(blocked, texts)}"


def _plan_as_json(plan: CommitPlan) -> dict[str, Json]:
    return {
        "tree": plan.tree,
        "head": plan.head,
        "agents": [*(plan.agents or ())],
        "files": [{"path": each.path, "authors": [*each.authors]} for each in plan.files],
        "left_out": [
            {"path": each.path, "reason": each.reason, "others": [*each.others]} for each in plan.blocked
        ],
    }


def _commit(
    workspace: Workspace,
    git: GitTree,
    tree: Tree,
    plan: CommitPlan,
    message: str,
    args: Namespace,
    texts: Catalogue,
) -> int:
    agents = [*(plan.agents or ())]
    if agent := find_parent_agent(workspace.root, os.environ):
        # An agent can commit only its own work.
        if agents != [agent]:
            raise AgentCannotAnswer(agent=agent)
        record = _commit_own(workspace, git, agent, message, args)
    else:
        found = _commit_as_person(workspace, tree, agents, message, args)
        if found is None:
            return 1
        record = found
    if args.json:
        fields: dict[str, Json] = {"commit": record.commit, "branch": record.branch}
        print_json({**_plan_as_json(plan), **fields}, indent=2)
    else:
        values = {"commit": record.commit[:12], "branch": sanitize(record.branch), "count": len(record.took)}
        print(texts("cli.commit.done", **values))
    return 0


def _branches(agents: Sequence[str], args: Namespace) -> Iterator[str | None]:
    """Yield the branches to try, None for the current branch."""
    if args.here or args.branch:
        yield args.branch
        return
    for number in range(1, _MAX_BRANCHES):
        yield propose_branch(agents, number)


def _commit_own(
    workspace: Workspace, git: GitTree, agent: str, message: str, args: Namespace
) -> CommitRecord:
    commit = partial(workspace.agent_commits.commit, CallContext(agent, COMMIT_AGENT), git, [agent], message)
    *branches, last = _branches([agent], args)
    for branch in branches:
        with suppress(InvalidBranch):
            return read_commit(commit(branch=branch))
    return read_commit(commit(branch=last))


def _commit_as_person(
    workspace: Workspace, tree: Tree, agents: Sequence[str], message: str, args: Namespace
) -> CommitRecord | None:
    """Commit as the person. Print the error and return None if the commit is refused."""
    person = args.person or name_of_this_person()
    result: Mapping[str, Json] = {}
    for branch in _branches(agents, args):
        arguments: dict[str, Json] = {
            "tree": tree.id,
            "agents": [*agents],
            "message": message,
            "branch": branch,
        }
        call = PersonCall(COMMIT_AGENT, arguments)
        result = act_as_person(workspace, person, call, language=args.language)
        if result["success"]:
            files = result["files"]
            took = {str(each): () for each in files} if isinstance(files, list) else {}
            return CommitRecord(tree.id, str(result["branch"]), str(result["commit"]), tree.head, took)
        if result.get("error") != InvalidBranch.code:
            break
    print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    return None


def declare_try(parser: ArgumentParser, texts: Catalogue) -> None:
    # The command's words may look like a workspace, so the workspace is an option here.
    parser.add_argument("agent", metavar="AGENT", help=texts("cli.argument.try_agent"))
    parser.add_argument("words", nargs="+", metavar="COMMAND", help=texts("cli.argument.try_command"))
    parser.add_argument("--dir", help=texts("cli.argument.nearest"))
    parser.add_argument("--tree", metavar="TREE", help=texts("cli.argument.tree"))
    parser.add_argument(
        "--link",
        action="append",
        metavar="FOLDER",
        help=texts("cli.argument.try_link", default=" ".join(LINKED)),
    )


def run_try(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status of the command, 124 if it timed out."""
    root = args.dir or find_workspace()
    if root is None:
        raise WrongUsage(texts("cli.trees.no_repository"))
    with open_trees(root, texts) as (workspace, reader):
        check_actor(workspace.journal, args.agent)
        git = reader.open_tree(choose_tree(reader, args.tree, texts).id)
        if git is None:
            raise WrongUsage(texts("cli.trees.no_repository"))
        plan = workspace.agent_commits.plan(git, [args.agent])
        for blocked in plan.blocked:
            print(f"{sanitize(blocked.path)}: {blocked_text(blocked, texts)}", file=sys.stderr)
        actor = find_parent_agent(workspace.root, os.environ) or f"human:{name_of_this_person()}"
        done = workspace.agent_commits.try_agent(
            git,
            [args.agent],
            args.words,
            call=CallContext(actor, TRY_AGENT),
            linked=args.link or LINKED,
        )
    for line in sanitize_lines(done.output.removesuffix("\n")) if done.output else ():
        print(line)
    status = texts("cli.try.timeout") if done.status is None else str(done.status)
    values = {"status": status, "seconds": f"{done.seconds:.1f}", "folder": sanitize(done.folder)}
    print(texts("cli.try.done", **values), file=sys.stderr)
    if done.status is None:
        return 124
    return done.status if done.status >= 0 else 128 - done.status
