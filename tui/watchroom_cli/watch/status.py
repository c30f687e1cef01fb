"""The command status: one line about what waits for a person."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from watchroom.errors import WatchroomError, WorkspaceNotFound
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import read_model
from watchroom.features.trees.place import find_workspace
from watchroom.kernel.journal import is_server_address
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import own_folder

from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.plain.status_text import status_line
from watchroom_cli.status_line import ask_for_line


def declare_status(parser: ArgumentParser, texts: Catalogue) -> None:
    # The default is the nearest workspace. A status line is empty in other folders, which is no wrong usage.
    parser.add_argument("dir", nargs="?", metavar="DIR", help=texts("cli.argument.nearest"))
    parser.add_argument("--line", action="store_true", help=texts("cli.status.line"))


def run_status(args: Namespace, texts: Catalogue) -> int:
    place = args.dir or os.curdir
    line = ask_for_line(place, args.language)
    try:
        line = _read_line(place, texts) if line is None else line
    except (WatchroomError, OSError) as error:
        if not args.line:
            raise
        if not isinstance(error, WorkspaceNotFound):
            print(f"watchroom: {sanitize(str(error))}", file=sys.stderr)
        return 0
    if line or not args.line:
        print(line or texts("status.calm"))
    return 0


def _read_line(place: str, texts: Catalogue) -> str:
    """Return the status line according to the journal. Raise `WorkspaceNotFound`, `JournalError`."""
    root = place if is_server_address(place) else find_workspace(os.path.abspath(place))
    if root is None:
        raise WorkspaceNotFound(root=place)
    journal = open_journal(root)
    try:
        model = read_model(journal, journal.last_seq())
        model = with_presences(model, journal.presence.all, own_folder(journal, root))
        return status_line(model._replace(time=journal.now()), texts)
    finally:
        journal.close()
