"""The command fork: create a workspace from a past moment of another workspace."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from typing import Final

from watchroom import Workspace
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.time_argument import moment, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.progress import progress_bar

_MAX_LISTED: Final = 20


def declare_fork(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("out", help=texts("cli.argument.fork_out"))
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_fork(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        until = moment(journal, args.at, texts)
        try:
            with progress_bar(texts("cli.fork.copying"), until) as show:
                fork = Workspace.fork(journal, until, args.out, show)
        except FileExistsError as error:
            raise WrongUsage(texts("cli.fork.exists", out=sanitize(str(error)))) from error
    if args.json:
        print_json(fork._asdict())
        return 1 if fork.unreadable else 0
    out = sanitize(args.out)
    print(texts("cli.fork.done", rows=fork.rows, row=fork.row, out=out))
    if fork.tasks:
        print(texts("cli.fork.tasks", folder=sanitize(fork.tasks)))
    if not fork.unreadable:
        return 0
    numbers = ", ".join(map(str, fork.unreadable[:_MAX_LISTED]))
    more = ", …" if len(fork.unreadable) > _MAX_LISTED else ""
    print(texts("cli.fork.unreadable", rows=numbers + more), file=sys.stderr)
    return 1
