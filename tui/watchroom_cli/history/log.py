"""The command log: print rows of the journal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final, get_args

from watchroom.features.sessions.rows import client_call
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.model import OUTCOMES, Row, Zone, row_as_json
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit, fit_path
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.known_names import check_actor
from watchroom_cli.arguments.time_argument import nanoseconds, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json
from watchroom_cli.output.stream import is_output_lost

_CHECK_SECONDS: Final = 1.0
"""Seconds between checks for new rows, and for a lost reader of the output."""


def declare_log(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--follow", action="store_true", help=texts("cli.argument.follow"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--limit", type=int, default=50, help=texts("cli.argument.limit"))
    parser.add_argument("--agent")
    parser.add_argument("--zone", choices=get_args(Zone))
    parser.add_argument("--path", help=texts("cli.argument.path"))
    parser.add_argument("--tool")
    parser.add_argument("--steps", action="store_true", help=texts("cli.argument.steps"))
    parser.add_argument("--outcome", choices=OUTCOMES)
    parser.add_argument("--since", metavar="TIME", help=texts("cli.argument.since"))
    add_utc_argument(parser, texts)


def run_log(args: Namespace, texts: Catalogue) -> int:
    if args.limit < 1:
        raise WrongUsage(texts("cli.log.limit"))
    journal = open_journal(args.dir)
    try:
        only = RowFilter(
            actor=args.agent,
            zone=args.zone,
            path=args.path,
            tool=args.tool,
            outcome=args.outcome,
            steps=args.steps or args.zone == "session" or args.tool is not None,
            since=nanoseconds(args.since, texts) if args.since else None,
        )
        last = journal.last_seq()
        rows = journal.rows_before(last + 1, limit=args.limit, only=only)
        if not rows and args.agent is not None:
            check_actor(journal, args.agent)
        _print_rows(reversed(rows), args.json, texts)
        if not (rows or args.json or args.follow):
            print(texts("cli.log.none"))
        if args.follow:
            _print_rows((row for row in _follow_rows(journal, last) if only.admits(row)), args.json, texts)
    finally:
        journal.close()
    return 0


def _follow_rows(journal: Journal, last: int) -> Iterator[Row]:
    """Yield the rows after ``last``, also new ones, until the output loses its reader."""
    with closing(journal.changes(last)) as commits:
        while not is_output_lost():
            while rows := journal.rows(last):
                last = rows[-1].seq
                yield from rows
            commits.wait(_CHECK_SECONDS)


def _print_rows(rows: Iterable[Row], as_json: bool, texts: Catalogue) -> None:
    for row in rows:
        if is_output_lost():
            return
        if as_json:
            print_json(row_as_json(row))
        else:
            what = labels.outcome_span(row, texts).text
            path = fit_path(sanitize(labels.path_of(row)), 30)
            time = zoned_time(row.time, "milliseconds")
            call = client_call(row)
            tool = fit(sanitize(row.tool if call is None else call.tool), 30)
            line = f"{time}  {fit(sanitize(row.actor), 14)}{tool} {path}  {what}"
            print(f"{line}  {labels.row_message(row)}".rstrip(), flush=True)
