"""The command events: each row of the journal as one line of JSON, for scripts (docs/events.md)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from watchroom.features.people.service import find_id
from watchroom.history.events import HELLO, KINDS, PROTOCOL, Event, EventReader
from watchroom.kernel.journal import Journal
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.known_names import check_actor
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json_line
from watchroom_cli.output.stream import is_output_lost

_CHECK_SECONDS: Final = 1.0
"""Seconds between checks for a lost reader of the output."""


def declare_events(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    # Required, because a format for people may be added later.
    parser.add_argument("--json", action="store_true", required=True, help=texts("cli.events.json"))
    parser.add_argument("--after", type=int, default=0, metavar="ROW", help=texts("cli.events.after"))
    parser.add_argument("--agent", metavar="ID", action="append", help=texts("cli.events.agent"))
    parser.add_argument(
        "--kind", choices=KINDS, metavar="KIND", action="append", help=texts("cli.events.kind")
    )
    parser.add_argument("--follow", action="store_true", help=texts("cli.argument.follow"))


def run_events(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        newest = journal.last_seq()
        if not 0 <= args.after <= newest:
            # A row number from another journal would skip events silently.
            raise WrongUsage(texts("cli.moment.beyond", given=args.after, last=newest))
        for agent in args.agent or ():
            check_actor(journal, agent)
        hello = {"kind": HELLO, "protocol": PROTOCOL, "after": args.after}
        workspace = find_id(journal)
        print_json_line({**hello, "workspace": workspace} if workspace else hello)
        for event in _read(journal, args.after, None if args.follow else newest):
            if is_output_lost():
                break
            if _is_wanted(event, args):
                print_json_line(event.as_json())
    return 0


def _read(journal: Journal, after: int, until: int | None) -> Iterator[Event]:
    """Yield the events after row ``after`` up to row ``until``. Follow new rows until the output loses its
    reader if ``until`` is None."""
    reader = EventReader(journal)
    # Opened before the first read, so that no row in between is missed.
    with closing(journal.changes()) as changes:
        while not is_output_lost():
            while events := reader.read(after, until=until):
                yield from events
                after = events[-1].row.seq
            if until is not None:
                return
            changes.wait(_CHECK_SECONDS)


def _is_wanted(event: Event, args: Namespace) -> bool:
    is_about = args.agent is None or any(event.is_about(agent) for agent in args.agent)
    return is_about and (args.kind is None or event.kind in args.kind)
