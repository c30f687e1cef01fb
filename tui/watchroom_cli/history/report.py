"""The command report: print a page about the time between two moments, for people who were absent."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from typing import Final

from watchroom.history.report import read_report
from watchroom.texts import Catalogue
from watchroom_tui.formatters.report_formats import as_html, as_json, as_markdown
from watchroom_tui.formatters.report_page import lay_out_report

from watchroom_cli.arguments.time_argument import moment_range, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json

_FORMATS: Final = ("md", "html", "json", "proof")


def declare_report(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--from", dest="since", metavar="SEQ | TIME", help=texts("cli.argument.range_from"))
    parser.add_argument("--to", dest="until", metavar="SEQ | TIME", help=texts("cli.argument.range_to"))
    parser.add_argument("--format", choices=_FORMATS, default="md", help=texts("cli.argument.report_format"))
    add_utc_argument(parser, texts)


def run_report(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        after, until = moment_range(journal, args.since, args.until, texts)
        if args.format == "proof":
            # Loaded only here, because the comparison with checkpoints is slow to import.
            from watchroom.history.seal.range_proof import prove_range

            print_json(prove_range(journal, after, until))
            return 0
        report = read_report(journal, after, until)
    if args.format == "json":
        print_json(as_json(report), indent=2)
        return 0
    page = lay_out_report(report, texts)
    text = as_markdown(page) if args.format == "md" else as_html(page, texts("report.language"))
    sys.stdout.write(text)
    return 0
