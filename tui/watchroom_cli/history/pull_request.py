"""The command pull-request: make a branch with one commit per author of a working tree, and open a pull
request for it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from watchroom.agents.clients.processes import find_parent_agent
from watchroom.features.policy.shown_commands import quote_word
from watchroom.features.trees.code_hosts import CHECK_STATUSES, HostAnswer, HostRequest
from watchroom.features.trees.pull_request_texts import format_message
from watchroom.features.trees.pull_requests import PullRequestOptions, PullRequestPlan, PullRequestRecord
from watchroom.features.trees.rows import PULL_REQUEST
from watchroom.model import Json
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall
from watchroom_tui.terminal.session import has_terminal

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.workspace_argument import find_workspace
from watchroom_cli.command import print_json
from watchroom_cli.history.tree_argument import choose_tree, open_trees

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree
    from watchroom.features.trees.rows import Tree

_YES: Final = ("y", "yes", "是")


def declare_pull_request(parser: ArgumentParser, texts: Catalogue) -> None:
    # The tree's name may look like a workspace, so the workspace is an option here.
    parser.add_argument("tree", nargs="?", metavar="TREE", help=texts("cli.argument.tree"))
    parser.add_argument("--status", action="store_true", help=texts("cli.argument.pull_request_status"))
    parser.add_argument("--into", metavar="BRANCH", help=texts("cli.argument.pull_request_into"))
    parser.add_argument(
        "--per",
        choices=("agent", "session"),
        default="agent",
        help=texts("cli.argument.pull_request_per"),
    )
    parser.add_argument("--branch", metavar="NAME", help=texts("cli.argument.pull_request_branch"))
    parser.add_argument("--title", metavar="TEXT", help=texts("cli.argument.pull_request_title"))
    parser.add_argument(
        "--remote", metavar="NAME", default="origin", help=texts("cli.argument.pull_request_remote")
    )
    parser.add_argument("--draft", action="store_true", help=texts("cli.argument.pull_request_draft"))
    parser.add_argument("--no-push", action="store_true", help=texts("cli.argument.pull_request_no_push"))
    parser.add_argument("--yes", action="store_true", help=texts("cli.argument.pull_request_yes"))
    parser.add_argument("--dir", help=texts("cli.argument.nearest"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_pull_request(args: Namespace, texts: Catalogue) -> int:
    """Return 1 if the branch was not pushed or the pull request was not opened, although this was
    requested."""
    root = args.dir or find_workspace()
    if root is None:
        raise WrongUsage(texts("cli.trees.no_repository"))
    with open_trees(root, texts) as (workspace, reader):
        tree = choose_tree(reader, args.tree, texts)
        git = reader.open_tree(tree.id)
        if git is None:
            raise WrongUsage(texts("cli.trees.unknown", given=sanitize(tree.id), known="-"))
        if args.status:
            return _show_status(workspace, git, tree, args, texts)
        own = catalogue(args.language or workspace.config.language)
        options = PullRequestOptions(
            args.into or "", args.per, args.branch or "", args.title or "", args.remote
        )
        plan = workspace.pull_requests.plan(git, options, own)
        if not args.json:
            for line in _describe_plan(plan, args, own, texts):
                print(line)
        is_agent = bool(find_parent_agent(workspace.root, os.environ))
        if not is_agent and not args.no_push and not args.yes and not _ask(plan, args, texts):
            print(texts("cli.pull_request.declined"), file=sys.stderr)
            return 1
        return _open(workspace, plan, args, texts)


def _ask(plan: PullRequestPlan, args: Namespace, texts: Catalogue) -> bool:
    """Ask the person whether to push. Raise `WrongUsage` if that is not possible."""
    if args.json or not has_terminal():
        raise WrongUsage(texts("cli.pull_request.no_terminal"))
    values = {"branch": sanitize(plan.options.branch), "remote": sanitize(plan.options.remote)}
    try:
        return input(f"{texts('cli.pull_request.question', **values)} ").strip().lower() in _YES
    except EOFError:
        return False


def _describe_plan(plan: PullRequestPlan, args: Namespace, own: Catalogue, texts: Catalogue) -> Iterator[str]:
    options = plan.options
    values = {"branch": sanitize(options.branch), "into": sanitize(options.into), "base": plan.base[:12]}
    yield texts("cli.pull_request.plan", **values)
    for number, each in enumerate(plan.commits, 1):
        subject, *trailers = format_message(each, own).splitlines()
        yield f"  {number}. {sanitize(subject)}"
        yield from (f"     {sanitize(line)}" for line in trailers if line)
    if plan.left_out:
        yield texts("cli.commit.left_out", count=len(plan.left_out))
        yield from (f"  {sanitize(each)}" for each in plan.left_out)
    if not args.no_push:
        place = plan.host.url if plan.host is not None else options.remote
        yield texts("cli.pull_request.push", branch=sanitize(options.branch), remote=sanitize(place))
    yield ""
    yield sanitize(plan.title)
    yield ""
    yield from sanitize_lines(plan.body.rstrip("\n"))
    yield ""


def _open(workspace: Workspace, plan: PullRequestPlan, args: Namespace, texts: Catalogue) -> int:
    options = plan.options
    arguments: dict[str, Json] = {
        "tree": plan.tree,
        "content": plan.content,
        "into": options.into,
        "per_session": options.per == "session",
        "branch": options.branch,
        "subject": plan.title,
        "remote": options.remote,
        "push": not args.no_push,
        "draft": args.draft,
    }
    person = args.person or name_of_this_person()
    result = act_as_person(workspace, person, PersonCall(PULL_REQUEST, arguments), language=args.language)
    if args.json:
        print_json({**result, "title": plan.title, "body": plan.body}, indent=2)
    elif not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    else:
        _print_outcome(result, plan, texts)
    is_failed = not result["success"] or str(result["state"]).endswith("failed")
    return 1 if is_failed else 0


def _print_outcome(result: Mapping[str, Json], plan: PullRequestPlan, texts: Catalogue) -> None:
    state = str(result["state"])
    branch, remote = str(result["branch"]), str(result["remote"]) or plan.options.remote
    values = {name: sanitize(str(result[name])) for name in ("branch", "url", "reason")}
    values |= {"commit": str(result["commit"])[:12], "remote": sanitize(remote)}
    values["command"] = sanitize(f"git push {quote_word(remote, 'REMOTE')} {quote_word(branch, 'BRANCH')}")
    values["program"] = plan.host.program if plan.host is not None else ""
    output = sys.stderr if state.endswith("failed") else sys.stdout
    print(texts(f"cli.pull_request.{state}", **values), file=output)
    if state in ("pushed", "open_failed"):
        key = "by_hand" if result["compare"] else "by_hand_unknown"
        print(texts(f"cli.pull_request.{key}", address=sanitize(str(result["compare"]))), file=output)


def _show_status(workspace: Workspace, git: GitTree, tree: Tree, args: Namespace, texts: Catalogue) -> int:
    """Print the newest pull request of ``tree``, and the state of its checks. Return 1 if it is not
    known."""
    record = next(iter(workspace.pull_requests.list_records(tree.id)), None)
    name = sanitize(tree.branch or tree.id)
    if record is None:
        print(texts("cli.pull_request.none", tree=name), file=sys.stderr)
        return 1
    host, answer = workspace.pull_requests.read_status(git, record)
    if args.json:
        print_json(_status_as_json(record, answer), indent=2)
        return 0 if answer.request is not None else 1
    values = {"branch": sanitize(record.branch), "into": sanitize(record.into)}
    if answer.request is not None:
        for line in _describe_status(answer.request, values, texts):
            print(line)
        return 0
    state = texts(f"cli.pull_request.state_{record.state}")
    print(texts("cli.pull_request.recorded", state=state, url=sanitize(record.url), **values).rstrip())
    key = "unknown_reason" if host is not None else "unknown"
    print(texts(f"cli.pull_request.{key}", reason=sanitize(answer.reason)), file=sys.stderr)
    return 1


def _describe_status(request: HostRequest, values: Mapping[str, str], texts: Catalogue) -> Iterator[str]:
    state = texts(f"cli.pull_request.is_{request.status}")
    yield texts("cli.pull_request.recorded", state=state, url=sanitize(request.url), **values).rstrip()
    counts = [
        texts(f"cli.pull_request.checks_{status}", count=count)
        for status in CHECK_STATUSES
        if (count := sum(each.status == status for each in request.checks))
    ]
    shown = texts("cli.pull_request.separator").join(counts) or texts("cli.pull_request.checks_none")
    yield texts("cli.pull_request.checks", counts=shown)
    yield from (f"  ✗ {sanitize(each.name)}" for each in request.checks if each.status == "failed")


def _status_as_json(record: PullRequestRecord, answer: HostAnswer) -> dict[str, Json]:
    request = answer.request
    found: dict[str, Json] = {
        "branch": record.branch,
        "commit": record.commit,
        "into": record.into,
        "state": record.state,
        "url": request.url if request is not None else record.url,
        "host_state": request.status if request is not None else None,
    }
    if request is None:
        return {**found, "checks": None, "reason": answer.reason}
    return {**found, "checks": [each._asdict() for each in request.checks]}
