"""The command keys: print the dashboard's keys."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from watchroom.texts import LANGUAGES, Catalogue
from watchroom_tui.presentation.localization import load_texts


def declare_keys(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    parser.add_argument("--ids", action="store_true", help=texts("cli.argument.ids"))


def run_keys(args: Namespace, texts: Catalogue) -> int:
    from watchroom_tui.keys.actions import ACTIONS
    from watchroom_tui.keys.keymap import keys_page

    if args.ids:
        print(*(f"{action.id} = {json.dumps(action.keys)}" for action in ACTIONS), sep="\n")
    else:
        print(keys_page(load_texts(args.language)))
    return 0
