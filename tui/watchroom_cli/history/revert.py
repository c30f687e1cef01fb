"""The command revert: revert the changes of agents since a moment, or preview the revert."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from watchroom.algorithms.merge import unified_diff
from watchroom.features.reverts.rules import (
    PlannedItem,
    PlannedPath,
    RevertPlan,
    RevertSelection,
    mode_change,
)
from watchroom.features.reverts.tools import ALL, decided_places
from watchroom.model import REVERT_WORK, Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.client_calls import client_edit_lines
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.known_names import check_actor
from watchroom_cli.arguments.time_argument import moment
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json


def declare_revert(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=texts("cli.revert.agent"))
    parser.add_argument("--agent", action="append", default=[], help=texts("cli.revert.agent"))
    parser.add_argument("--task", help=texts("cli.revert.task"))
    parser.add_argument("--all", action="store_true", help=texts("cli.revert.all"))
    parser.add_argument("--since", metavar="MOMENT", help=texts("cli.revert.since"))
    parser.add_argument("--until", metavar="MOMENT", help=texts("cli.revert.until"))
    parser.add_argument("--undo", metavar="ID", help=texts("cli.revert.undo"))
    parser.add_argument("--dry-run", action="store_true", help=texts("cli.revert.dry_run"))
    parser.add_argument("--diff", action="store_true", help=texts("cli.revert.diff"))
    parser.add_argument("--clean-only", action="store_true", help=texts("cli.revert.clean_only"))
    parser.add_argument(
        "--take-back", action="append", default=[], metavar="PATH", help=texts("cli.revert.take_back")
    )
    parser.add_argument("--with-spawned", action="store_true", help=texts("cli.revert.with_spawned"))
    parser.add_argument("--id", help=texts("cli.revert.id"))
    parser.add_argument("--message", default="", help=texts("cli.revert.message"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_revert(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if the revert was refused or could not revert everything."""
    agents = tuple(dict.fromkeys([*args.agents, *args.agent]))
    if bool(agents) + bool(args.task) + args.all + bool(args.undo) != 1:
        raise WrongUsage(texts("cli.revert.which"))
    if bool(args.undo) == bool(args.since):
        raise WrongUsage(texts("cli.revert.since_when"))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        for agent in agents:
            check_actor(workspace.journal, agent)
        if args.task:
            workspace.tasks.find(args.task)
        selection = RevertSelection(
            agents,
            args.task or "",
            0 if args.undo else moment(workspace.journal, args.since, texts),
            moment(workspace.journal, args.until, texts),
            undo=args.undo or "",
            decided=decided_places(args.take_back),
            decides_all=ALL in args.take_back,
            with_spawned=args.with_spawned,
        )
        if args.dry_run:
            _print_plan(workspace.reverts.plan(selection), args, texts)
            return 0
        return _apply(workspace, selection, args, texts)


def _apply(workspace: Workspace, selection: RevertSelection, args: Namespace, texts: Catalogue) -> int:
    arguments: dict[str, Json] = {
        "agents": list(selection.agents),
        "task": selection.task or None,
        "after": selection.after,
        "until": selection.until,
        "undo": selection.undo or None,
        "clean_only": args.clean_only,
        "take_back": args.take_back or None,
        "with_spawned": args.with_spawned,
        "revert_id": args.id,
        "message": args.message or None,
    }
    person = args.person or name_of_this_person()
    result = act_as_person(workspace, person, PersonCall(REVERT_WORK, arguments), language=args.language)
    if args.json:
        print_json(result)
    elif not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    else:
        for line in _result_lines(dict(result), texts):
            print(line)
    return 0 if result["success"] and not result["could_not"] else 1


def _result_lines(result: Mapping[str, Any], texts: Catalogue) -> Iterator[str]:
    kinds = ("written", "items", "conflicts", "could_not")
    has_trees = labels.has_several_trees(
        (each["zone"], each["path"]) for kind in kinds for each in result[kind]
    )
    for kind in kinds:
        for each in result[kind]:
            name = labels.file_name(each["zone"], each["path"], has_trees=has_trees)
            yield _line(kind, each["zone"], name, each["reason"], texts)
    yield from _list_not_reverted(result["not_reverted"], texts)
    if result["written"] or result["conflicts"] or result["items"]:
        count = result["written_count"] + len(result["items"])
        yield texts("cli.revert.done", count=count, id=result["revert_id"])
    else:
        yield texts("cli.revert.nothing")


def _print_plan(plan: RevertPlan, args: Namespace, texts: Catalogue) -> None:
    if args.json:
        print_json(
            {
                "until": plan.until,
                "agents": list(plan.agents),
                "paths": [_path_as_json(each, with_texts=args.diff) for each in plan.paths],
                "items": [_item_as_json(each, with_texts=args.diff) for each in plan.items],
                "not_reverted": dict(plan.not_reverted),
                "client_edits": [each._asdict() for each in plan.client_edits],
            }
        )
        return
    planned: list[PlannedPath | PlannedItem] = [*plan.paths, *plan.items]
    has_trees = labels.has_several_trees((each.zone, each.path) for each in planned)
    for each in planned:
        name = labels.file_name(each.zone, each.path, has_trees=has_trees)
        print(_line(each.plan.kind, each.zone, name, each.plan.reason, texts))
        if args.diff and each.plan.kind in ("clean", "conflict"):
            print("\n".join(sanitize_lines(describe_change(each, name))))
    for line in _list_not_reverted(plan.not_reverted, texts):
        print(line)
    if plan.client_edits:
        print(texts("revert.client_edits"))
        for line in client_edit_lines(plan.client_edits, texts):
            print(f"  {line}")
    if not plan.changes("clean", "conflict"):
        print(texts("cli.revert.nothing"))


def _line(kind: str, zone: str, path: str, reason: str, texts: Catalogue) -> str:
    fields = texts(f"revert.reason.{reason}") if reason else ""
    place = sanitize(f"{labels.zone_name(zone, texts)} {path}")
    return "\t".join(part for part in (texts(f"revert.kind.{kind}"), place, fields) if part)


def describe_change(planned: PlannedPath | PlannedItem, name: str) -> str:
    """Return the change of a revert to a path as a unified diff. The diff of a conflict is the proposal.

    ``name``: the path to show.
    """
    difference = unified_diff(planned.current or "", planned.plan.proposal or "", name, name)
    return "\n".join([*mode_change(planned), difference] if difference else mode_change(planned))


def _path_as_json(planned: PlannedPath, *, with_texts: bool) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "zone": planned.zone,
        "path": planned.path,
        "kind": planned.plan.kind,
        "version": planned.head.version,
        "took": list(planned.plan.took),
        "gave": list(planned.plan.gave),
        "reason": planned.plan.reason,
    }
    return {**fields, "diff": describe_change(planned, planned.path)} if with_texts else fields


def _item_as_json(planned: PlannedItem, *, with_texts: bool) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "zone": planned.zone,
        "path": planned.path,
        "kind": planned.plan.kind,
        "reason": planned.plan.reason,
    }
    return {**fields, "diff": describe_change(planned, planned.path)} if with_texts else fields


def _list_not_reverted(counts: Mapping[str, int], texts: Catalogue) -> Iterator[str]:
    if counts:
        listed = ", ".join(
            f"{count} × {labels.zone_name(zone, texts)}" for zone, count in sorted(counts.items())
        )
        yield texts("revert.not_reverted", listed=listed)
