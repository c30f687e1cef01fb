"""The command person: manage the people enrolled in a workspace, and their keys."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from watchroom.algorithms.sshsig import PublicKey, parse_key
from watchroom.features.people.rows import ROLES, People, Person, Role
from watchroom.kernel.call_context import CallContext
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.signing_keys import key_path

from watchroom_cli.acting_person import name_of_this_person, refuse_agents, unlock_key
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.people.person_keys import make_key_file, make_recovery_key, rotate_key

_DAY_NS = 24 * 3600 * 1_000_000_000
_MAX_KEY_CHARACTERS = 4_000


def declare_person(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument(
        "action",
        choices=["add", "list", "revoke", "key", "rotate", "recovery"],
        help=texts("cli.person.what"),
    )
    add_workspace_argument(parser, texts)
    parser.add_argument("name", nargs="?", metavar="NAME", help=texts("cli.person.name"))
    parser.add_argument("--role", choices=ROLES, help=texts("cli.person.role"))
    parser.add_argument("--key", metavar="LINE|FILE", help=texts("cli.person.key"))
    parser.add_argument("--device", action="store_true", help=texts("cli.person.device"))
    parser.add_argument("--tools", nargs="+", default=[], metavar="TOOL", help=texts("cli.person.tools"))
    parser.add_argument("--agents", nargs="+", default=[], metavar="AGENT", help=texts("cli.person.agents"))
    parser.add_argument("--since", type=int, metavar="ROW", help=texts("cli.person.since"))
    parser.add_argument("--lost", action="store_true", help=texts("cli.person.lost"))
    parser.add_argument("--days", type=float, help=texts("cli.person.days"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_person(args: Namespace, texts: Catalogue) -> int:
    if args.action in ("add", "revoke") and not args.name:
        raise WrongUsage(texts("cli.person.usage", action=args.action))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        people = workspace.people.current()
        if args.action == "list":
            _print_people(people, args, texts)
            return 0
        refuse_agents(args.dir)
        if args.action == "key":
            print(_own_key(args.name or name_of_this_person(), texts).line)
            return 0
        if args.action in ("rotate", "recovery"):
            _change_own_keys(workspace, args.name or args.person or name_of_this_person(), args, texts)
            return 0
        actor = args.person or (name_of_this_person() if people.is_closed else args.name)
        if args.action == "revoke":
            unlock_key(workspace, people, actor, texts)
            workspace.people.revoke(HUMAN_PREFIX + actor, args.name, since=args.since)
            is_open = not workspace.people.current().is_closed
            if is_open:
                workspace.settings.sign(CallContext(HUMAN_PREFIX + actor))
            print(texts("cli.person.opened" if is_open else "cli.person.revoked", name=sanitize(args.name)))
            return 0
        person = _person(args, people, actor, texts)
        unlock_key(workspace, people if people.is_closed else People(persons=(person,)), actor, texts)
        workspace.people.add(HUMAN_PREFIX + actor, person)
        if not people.is_closed:
            # Sign the settings. Otherwise anyone who can edit config.toml could change the agents'
            # permissions.
            workspace.settings.sign(CallContext(HUMAN_PREFIX + actor))
    _print_added(person, not people.is_closed, texts)
    return 0


def _change_own_keys(workspace: Workspace, name: str, args: Namespace, texts: Catalogue) -> None:
    if args.action == "recovery":
        print(make_recovery_key(workspace, name, texts))
        print(texts("cli.person.recovery_once"), file=sys.stderr)
        return
    key = rotate_key(workspace, name, is_lost=args.lost, texts=texts)
    print(texts("cli.person.rotated", name=sanitize(name), fingerprint=key.fingerprint))


def _person(args: Namespace, people: People, actor: str, texts: Catalogue) -> Person:
    """Return the person described by the arguments."""
    if args.key:
        key = parse_key(_read_line(args.key))
    elif args.device:
        key = _device_key(texts)
    elif args.name == actor:
        key = _own_key(args.name, texts)
    else:
        raise WrongUsage(texts("cli.person.key_needed", name=sanitize(args.name)))
    role: Role = args.role or ("supervisor" if people.is_closed else "owner")
    expires = None if args.days is None else time.time_ns() + int(args.days * _DAY_NS)
    return Person(args.name, role, (key.line,), tuple(args.tools), tuple(args.agents), expires)


def _own_key(name: str, texts: Catalogue) -> PublicKey:
    """Return the key of the person at this machine. Create the key if it does not exist."""
    from watchroom.platform.signing import read_public_key

    path = key_path(name)
    return read_public_key(path) if os.path.exists(path) else make_key_file(path, texts)


def _device_key(texts: Catalogue) -> PublicKey:
    from watchroom.platform.signing import list_device_keys

    found = list_device_keys()
    if len(found) != 1:
        raise WrongUsage(texts("cli.person.devices", count=len(found)))
    return found[0]


def _read_line(given: str) -> str:
    """Return the content of the file ``given``, or ``given`` if it is not a file."""
    if not os.path.isfile(given):
        return given
    with open(given, encoding="utf-8", errors="replace") as file:
        return file.read(_MAX_KEY_CHARACTERS)


def _print_people(people: People, args: Namespace, texts: Catalogue) -> None:
    if args.json:
        persons = [{**each._asdict(), "keys": _fingerprints(each)} for each in people.persons]
        print_json({"workspace": people.workspace, "closed": people.is_closed, "people": persons})
        return
    if not people.is_closed:
        print(texts("cli.person.open"))
    elif people.accepts_legacy:
        print(texts("cli.person.legacy"))
    for each in sorted(people.persons):
        limits = [*each.tools, *each.agents]
        if each.expires is not None:
            limits.append(
                texts("cli.person.until", time=datetime.fromtimestamp(each.expires / 1e9, UTC).date())
            )
        fields = [each.name, each.role, " ".join(_fingerprints(each)), ", ".join(limits)]
        print("\t".join(sanitize(field) for field in fields).rstrip())


def _fingerprints(person: Person) -> list[str]:
    return [parse_key(line).fingerprint for line in person.keys]


def _print_added(person: Person, is_first: bool, texts: Catalogue) -> None:
    named = {"name": sanitize(person.name), "role": person.role, "fingerprint": _fingerprints(person)[0]}
    print(texts("cli.person.closed" if is_first else "cli.person.added", **named))
