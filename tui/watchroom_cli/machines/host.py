"""The commands host and move: choose the checkout whose external edits count, and move the journal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from watchroom.kernel.checkout.host import CheckoutHost
from watchroom.kernel.checkout.location import IN_FILE, move_journal
from watchroom.kernel.journal import database_name, is_server_address
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.validation import check_human_name
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import name_of_this_person, refuse_agents
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.progress import progress_bar


def declare_host(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--show", action="store_true", help=texts("cli.host.show"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_host(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if another checkout became the host at the same moment."""
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        if not workspace.journal.is_shared:
            print(texts("cli.host.one_machine"))
            return 0
        if args.show:
            _print(workspace.host, args, texts)
            return 0
        refuse_agents(workspace.root)
        person = check_human_name(args.person or name_of_this_person())
        row = workspace.move_host(HUMAN_PREFIX + person)
        _print(workspace.host, args, texts)
    return 0 if row.outcome == "ok" else 1


def declare_move(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("target", help=texts("cli.move.target"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_move(args: Namespace, texts: Catalogue) -> int:
    refuse_agents(args.dir)
    if args.target != IN_FILE and not is_server_address(args.target):
        raise WrongUsage(texts("cli.move.no_target", given=sanitize(args.target)))
    with progress_bar(texts("cli.move.copying")) as show:
        moved = move_journal(args.dir, args.target, show)
    where = database_name(args.target) if is_server_address(args.target) else args.dir
    if args.json:
        print_json({"rows": moved.rows, "sha256": moved.digest, "target": where})
    else:
        print(texts("cli.move.done", rows=moved.rows, where=sanitize(where), digest=moved.digest[:16]))
    return 0


def _print(host: CheckoutHost, args: Namespace, texts: Catalogue) -> None:
    found = host.find()
    if args.json:
        print_json({**(found._asdict() if found else {}), "here": host.is_here()})
    elif found is None:
        print(texts("cli.host.none"))
    else:
        key = "here" if host.is_here() else "there"
        print(texts(f"cli.host.{key}", machine=sanitize(found.machine), folder=sanitize(found.folder)))
