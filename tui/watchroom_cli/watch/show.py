"""The command show: print a view of the dashboard."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from watchroom.errors import ConfigInvalid
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import read_model
from watchroom.model import timestamp
from watchroom.texts import Catalogue
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.presentation.shown_place import own_folder

from watchroom_cli.arguments.time_argument import moment, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json
from watchroom_cli.output.table import format_table
from watchroom_cli.watch.views import VIEWS, view_of


def declare_show(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument(
        "view",
        nargs="?",
        choices=VIEWS,
        default="needs",
        metavar="VIEW",
        help=texts("cli.argument.view_name", views=", ".join(VIEWS)),
    )
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    add_utc_argument(parser, texts)


def run_show(args: Namespace, texts: Catalogue) -> int:
    journal = open_journal(args.dir)
    try:
        model = read_model(journal, moment(journal, args.at, texts))
        if args.at is None:
            # Show the present if no moment is given, because needs become urgent without a new row.
            model = with_presences(model, journal.presence.all, own_folder(journal, args.dir))
            model = model._replace(time=journal.now())
    finally:
        journal.close()
    if args.view != "needs" and any(need.row.error == ConfigInvalid.code for need in model.needs):
        # The views use the last valid configuration.
        print(f"watchroom: {texts('cli.show.config')}", file=sys.stderr)
    lines = view_of(model, args.view, texts, timestamp if args.json else zoned_time)
    if args.json:
        print_json(lines, indent=2)
    else:
        for line in format_table(lines, texts) or [texts("cli.show.none", view=args.view)]:
            print(line)
    return 0
