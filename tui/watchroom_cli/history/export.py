"""The command export: write the versions of the files at an earlier moment."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Final

from watchroom.model import Row
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.time_argument import moment
from watchroom_cli.arguments.workspace_argument import add_workspace_argument

_MAX_LISTED: Final = 20
"""Max omitted files to list. The other omitted files are counted."""


def declare_export(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("out", help=texts("cli.argument.export_out"))
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))


def run_export(args: Namespace, texts: Catalogue) -> int:
    if os.path.lexists(args.out) and not (os.path.isdir(args.out) and not os.listdir(args.out)):
        raise WrongUsage(texts("cli.export.not_empty", out=args.out))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        until = moment(workspace.journal, args.at, texts)
        left_out: list[Row] = []
        count = workspace.export(until, args.out, on_left_out=left_out.append)
    done = "cli.export.done_one" if count == 1 else "cli.export.done"
    print(texts(done, count=count, row=until, out=args.out))
    if not left_out:
        return 0
    print(texts("cli.export.left_out", count=len(left_out)), file=sys.stderr)
    for row in left_out[:_MAX_LISTED]:
        print(f"  #{row.seq} {sanitize(f'{row.zone}/{row.path}')}", file=sys.stderr)
    if len(left_out) > _MAX_LISTED:
        print("  " + texts("cli.export.more", count=len(left_out) - _MAX_LISTED), file=sys.stderr)
    return 1
