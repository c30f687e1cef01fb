"""The command git: export the workspace's files as a git history or branch, and import them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from watchroom.history.git import LeftOut, export_history, write_branch
from watchroom.model import HUMAN_PREFIX, Json
from watchroom.texts import Catalogue
from watchroom.validation import check_human_name
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import name_of_this_person, refuse_agents
from watchroom_cli.arguments.time_argument import moment, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.progress import progress_bar

_MAX_LISTED: Final = 20


def declare_git(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--export", metavar="REPO", help=texts("cli.argument.git_export"))
    what.add_argument("--branch", metavar="NAME", help=texts("cli.argument.git_branch"))
    what.add_argument("--import", dest="source", metavar="REPO", help=texts("cli.argument.git_import"))
    parser.add_argument(
        "--per", choices=("version", "session"), default="version", help=texts("cli.argument.git_per")
    )
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--task", metavar="ID", default="", help=texts("cli.argument.git_task"))
    parser.add_argument("--repository", metavar="REPO", default="", help=texts("cli.argument.git_repository"))
    parser.add_argument("--base", metavar="COMMIT", default="", help=texts("cli.argument.git_base"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_git(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if a branch lacks versions of the task's files."""
    if args.source is not None:
        return _import(args, texts)
    return _export(args, texts) if args.export is not None else _branch(args, texts)


def _export(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        until = moment(journal, args.at, texts)
        with progress_bar(texts("cli.git.reading")) as show:
            done = export_history(journal, args.export, per=args.per, until=until, on_progress=show)
    if args.json:
        left_out = [_as_json(each) for each in done.left_out]
        print_json({**done._asdict(), "left_out": left_out}, indent=2)
        return 0
    counts = {"commits": done.commits, "versions": done.versions, "refused": done.refused}
    print(texts("cli.git.exported", **counts, until=done.until, path=sanitize(args.export)))
    _print_left_out(done.left_out, done.skipped, texts)
    return 0


def _branch(args: Namespace, texts: Catalogue) -> int:
    if not args.task:
        raise WrongUsage(texts("cli.git.task"))
    with closing(open_journal(args.dir)) as journal:
        done = write_branch(journal, args.task, args.branch, path=args.repository, base=args.base)
    status = 1 if done.skipped else 0
    if args.json:
        left_out = [_as_json(each) for each in done.left_out]
        print_json({**done._asdict(), "left_out": left_out}, indent=2)
        return status
    where = {"name": sanitize(args.branch), "path": sanitize(done.repository)}
    print(texts("cli.git.branched", commits=done.commits, **where))
    _print_left_out(done.left_out, done.skipped, texts)
    return status


def _import(args: Namespace, texts: Catalogue) -> int:
    person = HUMAN_PREFIX + check_human_name(args.person or name_of_this_person())
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        refuse_agents(workspace.root)
        done = workspace.import_git(args.source, person, task=args.task)
    if args.json:
        print_json({**done._asdict(), "omitted": [each._asdict() for each in done.omitted]}, indent=2)
        return 0
    counts = {"versions": done.versions, "conflicts": done.conflicts, "unchanged": done.unchanged}
    print(texts("cli.git.imported", commit=done.commit[:12], **counts))
    if done.omitted:
        print(texts("cli.git.omitted", count=len(done.omitted)))
    for each in done.omitted[:_MAX_LISTED]:
        print(f"  {sanitize(each.path)}: {texts(f'cli.git.reason.{each.reason}')}")
    if len(done.omitted) > _MAX_LISTED:
        print("  " + texts("cli.git.more", count=len(done.omitted) - _MAX_LISTED))
    return 0


def _print_left_out(left_out: Sequence[LeftOut], count: int, texts: Catalogue) -> None:
    if count:
        print(texts("cli.git.left_out", count=count))
    for each in left_out[:_MAX_LISTED]:
        row = each.row
        print(f"  #{row.seq} {row.zone}/{sanitize(row.path)}: {texts(f'cli.git.reason.{each.reason}')}")
    if count > _MAX_LISTED:
        print("  " + texts("cli.git.more", count=count - _MAX_LISTED))


def _as_json(left_out: LeftOut) -> Json:
    row = left_out.row
    return {"row": row.seq, "zone": row.zone, "path": row.path, "reason": left_out.reason}
