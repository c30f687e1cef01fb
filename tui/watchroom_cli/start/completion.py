"""The commands completion and man: print shell completions and the manual page of the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

import shtab
from argparse_manpage.manpage import Manpage
from watchroom import __version__
from watchroom.texts import Catalogue

from watchroom_cli.arguments.workspace_argument import WorkspaceArgument
from watchroom_cli.commands import COMMANDS

_SHELLS: Final = ("bash", "zsh", "fish")
_FOLDERS: Final = ("DIR", "OUT")
"""The placeholders of folder arguments."""


def declare_completion(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("shell", choices=_SHELLS)


def run_completion(args: Namespace, texts: Catalogue) -> int:
    print(shtab.complete(_build_parser(texts), args.shell))
    return 0


def declare_man(parser: ArgumentParser, texts: Catalogue) -> None:
    pass


def run_man(args: Namespace, texts: Catalogue) -> int:
    page = Manpage(_build_parser(texts), format="single-commands-section")
    page.manual, page.source, page.mf.manual = "Watchroom", f"watchroom {__version__}", "Watchroom"
    print(page)
    return 0


def _build_parser(texts: Catalogue) -> ArgumentParser:
    """Return one parser with all commands. Load the modules of the commands."""
    parser = ArgumentParser(prog="watchroom", description=texts("cli.description"))
    version = f"watchroom {__version__}"
    parser.add_argument("--version", action="version", version=version, help=texts("cli.argument.version"))
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        about = texts(f"cli.{command.name}.help")
        added = commands.add_parser(command.name, help=about, description=about)
        command.declare(added, texts)
        for action in added._actions:
            if isinstance(action, WorkspaceArgument) or action.metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # read by shtab
    return parser
