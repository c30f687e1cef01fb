"""The command member: manage the logins of agents and people to a workspace in a database."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing

from watchroom.errors import ExtraMissing, WorkspaceNotFound
from watchroom.kernel.checkout.location import find_journal
from watchroom.kernel.journal import is_server_address
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import refuse_agents
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json

_KINDS = ("agent", "supervisor", "viewer")


def declare_member(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=["add", "list", "revoke"], help=texts("cli.member.what"))
    add_workspace_argument(parser, texts, "cli.member.dir")
    parser.add_argument("name", nargs="?", help=texts("cli.member.name"))
    parser.add_argument("--as", dest="kind", choices=_KINDS, help=texts("cli.member.kind"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_member(args: Namespace, texts: Catalogue) -> int:
    address = args.dir if is_server_address(args.dir) else find_journal(args.dir)
    if address is None:
        raise WorkspaceNotFound(root=args.dir)
    if not is_server_address(address):
        raise WrongUsage(texts("cli.member.no_server"))
    if (args.action != "list") != bool(args.name) or (args.action == "add") != bool(args.kind):
        raise WrongUsage(texts("cli.member.usage"))
    refuse_agents(args.dir)
    try:
        from watchroom.kernel.journal.postgres.members import DatabaseMembers
    except ImportError as error:
        raise ExtraMissing(extra="postgres", package="psycopg") from error
    with closing(DatabaseMembers(address)) as members:
        if args.action == "add":
            login = members.add(args.name, args.kind)
            if args.json:
                print_json({"name": args.name, "kind": args.kind, "address": login})
            else:
                print(texts("cli.member.added", name=sanitize(args.name), address=login))
            return 0
        found = members.revoke(args.name) if args.action == "revoke" else members.all()
    if args.json:
        print_json([each._asdict() for each in found])
    for each in () if args.json else found:
        mark = "●" if each.is_connected else " "
        print(f"{mark} {sanitize(each.actor)}\t{each.kind}\t{sanitize(each.role)}")
    return 0
