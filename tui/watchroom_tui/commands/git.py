"""The command git: the history of the workspace's files as a repository."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from rich.console import Console
from rich.progress import Progress as Bar
from watchroom.git import LeftOut, export_history
from watchroom.git.export import Progress
from watchroom.model import Json
from watchroom.texts import Catalogue

from watchroom_tui.commands.command import print_json
from watchroom_tui.commands.time_argument import moment, open_journal
from watchroom_tui.sanitize import sanitize

_MOST_SHOWN: Final = 20


def declare_git(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("dir", help=texts("cli.argument.dir"))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--export", metavar="REPO", help=texts("cli.argument.git_export"))
    parser.add_argument(
        "--per", choices=("version", "session"), default="version", help=texts("cli.argument.git_per")
    )
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_git(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        until = moment(journal, args.at, texts)
        with _bar(texts) as show:
            done = export_history(journal, args.export, per=args.per, until=until, progress=show)
    if args.json:
        left_out = [_as_json(each) for each in done.left_out]
        print_json({**done._asdict(), "left_out": left_out}, indent=2)
        return 0
    counts = {"commits": done.commits, "versions": done.versions, "refused": done.refused}
    print(texts("cli.git.exported", **counts, until=done.until, path=sanitize(args.export)))
    _print_left_out(done.left_out, done.skipped, texts)
    return 0


@contextmanager
def _bar(texts: Catalogue) -> Iterator[Progress]:
    """A bar on the terminal, gone when it is done."""
    # It is drawn with escapes.
    with Bar(console=Console(file=sys.__stderr__), transient=True) as bar:
        known = bar.tasks[bar.add_task(texts("cli.git.reading"), total=None)]

        def show(done: int, total: int) -> None:
            known.total = total
            bar.advance(known.id, done - known.completed)

        yield show


def _print_left_out(left_out: Sequence[LeftOut], count: int, texts: Catalogue) -> None:
    if count:
        print(texts("cli.git.left_out", count=count))
    for each in left_out[:_MOST_SHOWN]:
        row = each.row
        print(f"  #{row.seq} {row.zone}/{sanitize(row.path)}: {texts(f'cli.git.reason.{each.reason}')}")
    if count > _MOST_SHOWN:
        print("  " + texts("cli.git.more", count=count - _MOST_SHOWN))


def _as_json(left_out: LeftOut) -> Json:
    row = left_out.row
    return {"row": row.seq, "zone": row.zone, "path": row.path, "reason": left_out.reason}
