"""Commands that look: log, show, verify, export."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from time import time_ns
from typing import get_args

from rich.console import Console
from rich.text import Text
from watchroom.journal import Journal, RowFilter
from watchroom.model import OUTCOMES, Row, Zone, row_as_json, timestamp
from watchroom.projections import Fold, Model
from watchroom.texts import Catalogue
from watchroom.tree.layout import CONTROL
from watchroom.wake import BACKSTOP_SECONDS, waker
from watchroom.workspace import Workspace

from watchroom_tui import describe
from watchroom_tui.columns import fit, fit_path
from watchroom_tui.commands.command import WrongUsage, print_json
from watchroom_tui.commands.moments import moment, nanoseconds, open_journal
from watchroom_tui.commands.views import VIEWS, view_of
from watchroom_tui.local_time import zoned_time
from watchroom_tui.safe import safe


def declare_log(parser: ArgumentParser, words: Catalogue) -> None:
    parser.add_argument("dir", help=words("cli.argument.dir"))
    parser.add_argument("--follow", action="store_true", help=words("cli.argument.follow"))
    parser.add_argument("--json", action="store_true", help=words("cli.argument.json"))
    parser.add_argument("--limit", type=int, default=50, help=words("cli.argument.limit"))
    parser.add_argument("--agent")
    parser.add_argument("--zone", choices=get_args(Zone))
    parser.add_argument("--path", help=words("cli.argument.path"))
    parser.add_argument("--tool")
    parser.add_argument("--steps", action="store_true", help=words("cli.argument.steps"))
    parser.add_argument("--outcome", choices=OUTCOMES)
    parser.add_argument("--since", metavar="TIME", help=words("cli.argument.since"))


def run_log(given: Namespace, words: Catalogue) -> int:
    if given.limit < 1:
        raise WrongUsage(words("cli.log.limit"))
    journal = open_journal(given.dir)
    try:
        only = RowFilter(
            actor=given.agent,
            zone=given.zone,
            path=given.path,
            tool=given.tool,
            outcome=given.outcome,
            steps=given.steps or given.zone == "session" or given.tool is not None,
            since=nanoseconds(given.since, words) if given.since else None,
        )
        last = journal.last_seq()
        _print_rows(reversed(journal.rows_before(last + 1, limit=given.limit, only=only)), given.json, words)
        if given.follow:
            _print_rows(
                (row for row in _coming(journal, last, given.dir) if only.admits(row)), given.json, words
            )
    finally:
        journal.close()
    return 0


def _coming(journal: Journal, last: int, root: str) -> Iterator[Row]:
    """Rows after ``last``, as they are committed."""
    with closing(waker(os.path.join(root, CONTROL))) as commits:
        while True:
            while rows := journal.rows(last):
                last = rows[-1].seq
                yield from rows
            commits.wait(BACKSTOP_SECONDS)


def _print_rows(rows: Iterable[Row], as_json: bool, words: Catalogue) -> None:
    for row in rows:
        if as_json:
            print_json(row_as_json(row))
        else:
            what = describe.outcome(row, words).text
            path = fit_path(safe(describe.path_of(row)), 30)
            time = zoned_time(row.time, "milliseconds")
            line = f"{time}  {fit(safe(row.actor), 14)}{fit(safe(row.tool), 30)} {path}  {what}"
            print(f"{line}  {describe.said(row)}".rstrip(), flush=True)


def declare_show(parser: ArgumentParser, words: Catalogue) -> None:
    parser.add_argument("dir", help=words("cli.argument.dir"))
    parser.add_argument("view", choices=VIEWS)
    parser.add_argument("--at", metavar="SEQ | TIME", help=words("cli.argument.at"))
    parser.add_argument("--json", action="store_true", help=words("cli.argument.json"))


def run_show(given: Namespace, words: Catalogue) -> int:
    journal = open_journal(given.dir)
    try:
        model = _model(journal, moment(journal, given.at, words))
        if given.at is None:
            # As of now, as the dashboard shows it: things become urgent without a row.
            model = model._replace(time=time_ns())
    finally:
        journal.close()
    lines = view_of(model, given.view, words, timestamp if given.json else zoned_time)
    if given.json:
        print_json(lines, indent=2)
    else:
        for line in lines:
            print("  ".join(safe(str(value)) for value in line.values()))
    return 0


def _model(journal: Journal, until: int) -> Model:
    fold = Fold(journal.content)
    while fold.seq < until:
        rows = journal.rows(fold.seq, until=until, limit=5000)
        if not rows:
            break
        fold.apply(rows)
    return fold.model()


def declare_verify(parser: ArgumentParser, words: Catalogue) -> None:
    parser.add_argument("dir", help=words("cli.argument.dir"))
    parser.add_argument("--repair", action="store_true", help=words("cli.argument.repair"))
    parser.add_argument("--json", action="store_true", help=words("cli.argument.json"))


def run_verify(given: Namespace, words: Catalogue) -> int:
    # Its spinner is drawn with escapes.
    console = Console(file=sys.__stderr__)
    with (
        console.status(Text(words("cli.verify.comparing", root=safe(given.dir)))),
        Workspace.open(given.dir, create=False, scan=given.repair) as workspace,
    ):
        problems = workspace.repair() if given.repair else workspace.verify()
        rows = workspace.journal.last_seq()
    if given.json:
        found = [asdict(each) for each in problems]
        print_json({"clean": not problems, "rows": rows, "problems": found}, indent=2)
    elif not problems:
        print(words("cli.verify.clean", rows=rows))
    else:
        for each in problems:
            print(f"{each.kind}\t{each.zone}\t{safe(each.path)}\t{safe(each.what)}")
        of_journal = sum(each.kind == "journal" for each in problems)
        of_files = len(problems) - of_journal
        if of_files:
            closing = "cli.verify.remains" if given.repair else "cli.verify.found"
            print(words(closing, count=of_files, root=given.dir), file=sys.stderr)
        if of_journal:
            print(words("cli.verify.journal", count=of_journal), file=sys.stderr)
    return 0 if not problems else 1


def declare_export(parser: ArgumentParser, words: Catalogue) -> None:
    parser.add_argument("dir", help=words("cli.argument.dir"))
    parser.add_argument("out")
    parser.add_argument("--at", metavar="SEQ | TIME", help=words("cli.argument.at"))


def run_export(given: Namespace, words: Catalogue) -> int:
    if os.path.isdir(given.out) and os.listdir(given.out):
        raise WrongUsage(words("cli.export.not_empty", out=given.out))
    with Workspace.open(given.dir, create=False, scan=False) as workspace:
        until = moment(workspace.journal, given.at, words)
        count = workspace.export(until, given.out)
    print(words("cli.export.done", count=count, row=until, out=given.out))
    return 0
