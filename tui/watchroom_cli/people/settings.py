"""The command settings: show the settings in force, and sign changed settings."""

from __future__ import annotations

import difflib
import sys
from argparse import ArgumentParser, Namespace

from watchroom.features.config.rows import dump_settings
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json


def declare_settings(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--sign", action="store_true", help=texts("cli.settings.sign"))
    parser.add_argument("--key", metavar="FILE", default="", help=texts("cli.argument.key"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_settings(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if signing is refused."""
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        if args.sign:
            return _sign(workspace, args, texts)
        _show(workspace, args, texts)
    return 0


def _sign(workspace: Workspace, args: Namespace, texts: Catalogue) -> int:
    if not args.json:
        _print_difference(workspace)
    person = args.person or name_of_this_person()
    call = PersonCall(SIGN_SETTINGS, {})
    result = act_as_person(workspace, person, call, language=args.language, key=args.key)
    if args.json:
        print_json(result)
    elif not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    else:
        print(
            texts("cli.settings.signed" if result.get("row") else "cli.settings.none", row=result.get("row"))
        )
    return 0 if result["success"] else 1


def _show(workspace: Workspace, args: Namespace, texts: Catalogue) -> None:
    state = workspace.settings.state()
    text = dump_settings(workspace.config)
    if args.json:
        signed = state.signed
        print_json(
            {
                "settings": text,
                "signed": None if signed is None else {"row": signed.seq, "by": signed.actor},
                "unsigned": list(state.unsigned),
            }
        )
        return
    if state.signed is None:
        is_closed = workspace.people.current().is_closed
        print(texts("cli.settings.of_file" if is_closed else "cli.settings.open"))
    else:
        name = sanitize(state.signed.actor.removeprefix(HUMAN_PREFIX))
        print(texts("cli.settings.signed_by", name=name, row=state.signed.seq))
    for line in text.splitlines() or [texts("cli.settings.defaults")]:
        print(sanitize(line))
    if state.unsigned:
        print()
        print(texts("cli.settings.unsigned", root=place_word(args.dir)))
        _print_difference(workspace)


def _print_difference(workspace: Workspace) -> None:
    """Print the difference between the settings in force and config.toml."""
    holds, written = (
        dump_settings(config).splitlines() for config in (workspace.config, workspace.registry.written())
    )
    for line in [*difflib.unified_diff(holds, written, lineterm="", n=1)][2:]:
        print(sanitize(line))
