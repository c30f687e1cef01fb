"""The commands log, show and export: read a workspace."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final, get_args

from watchroom.errors import ConfigInvalid
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.rows import client_call
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.model import OUTCOMES, Row, Zone, row_as_json, timestamp
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import add_utc_argument, print_json
from watchroom_tui.commands.known_names import check_actor
from watchroom_tui.commands.table import format_table
from watchroom_tui.commands.time_argument import moment, nanoseconds, open_journal
from watchroom_tui.commands.views import VIEWS, view_of
from watchroom_tui.commands.workspace_argument import add_workspace_argument
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit, fit_path
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.output_stream import is_output_lost
from watchroom_tui.sanitize import sanitize
from watchroom_tui.shown_place import own_folder
from watchroom_tui.usage import WrongUsage

_MAX_LISTED: Final = 20
_LOOK_SECONDS: Final = 1.0
"""How often it is looked whether somebody still reads, and whether rows came that nothing told of."""


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
            _print_rows((row for row in _coming(journal, last) if only.admits(row)), args.json, texts)
    finally:
        journal.close()
    return 0


def _coming(journal: Journal, last: int) -> Iterator[Row]:
    """Rows after ``last``, as they are committed, until nobody reads them any more."""
    with closing(journal.changes(last)) as commits:
        while not is_output_lost():
            while rows := journal.rows(last):
                last = rows[-1].seq
                yield from rows
            commits.wait(_LOOK_SECONDS)


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


def declare_show(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("view", choices=VIEWS, metavar="VIEW", help=", ".join(VIEWS))
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    add_utc_argument(parser, texts)


def run_show(args: Namespace, texts: Catalogue) -> int:
    journal = open_journal(args.dir)
    try:
        model = read_model(journal, moment(journal, args.at, texts))
        if args.at is None:
            # As of now, as the dashboard shows it: things become urgent without a row.
            model = with_presences(model, journal.presence.all, own_folder(journal, args.dir))
            model = model._replace(time=journal.now())
    finally:
        journal.close()
    if args.view != "needs" and any(need.row.error == ConfigInvalid.code for need in model.needs):
        # What is shown rests on an older one.
        print(f"watchroom: {texts('cli.show.config')}", file=sys.stderr)
    lines = view_of(model, args.view, texts, timestamp if args.json else zoned_time)
    if args.json:
        print_json(lines, indent=2)
    else:
        for line in format_table(lines, texts) or [texts("cli.show.none", view=args.view)]:
            print(line)
    return 0


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
