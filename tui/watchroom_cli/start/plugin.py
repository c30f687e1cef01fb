"""The command plugin: the plugin for Claude Code and Codex, and the server that it starts."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from pathlib import Path
from typing import Final, NoReturn

from watchroom.agents.clients import idle_server
from watchroom.agents.clients.adapter import PLUGIN_OFF, PLUGIN_SWITCH
from watchroom.agents.clients.registry import PLUGIN_CLIENTS
from watchroom.features.trees.place import workspace_root
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.arguments.workspace_argument import find_working_repository
from watchroom_cli.command import isolated_program, own_program
from watchroom_cli.start.attach import is_attached

FOLDER: Final = Path(__file__).parents[1] / "marketplace"
"""The folder of the marketplace with the plugin."""
AGENTS_FILE: Final = FOLDER / "watchroom" / "agents.md"


def declare_plugin(parser: ArgumentParser, texts: Catalogue) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--agents-md", action="store_true", help=texts("cli.argument.agents_md"))
    kind.add_argument("--serve", choices=[*PLUGIN_CLIENTS], help=SUPPRESS)


def run_plugin(args: Namespace, texts: Catalogue) -> int:
    if args.serve is not None:
        _serve(args.serve, texts)
    if args.agents_md:
        print(AGENTS_FILE.read_text(encoding="utf-8"), end="")
        return 0
    print(sanitize(str(FOLDER)))
    print(texts("cli.plugin.next"), file=sys.stderr)
    return 0


def _serve(client: str, texts: Catalogue) -> NoReturn:
    """Replace this process with the MCP server of ``client``.

    It has no tools if the repository has no workspace, or if `attach` has connected the client with the
    workspace. Raise `WrongUsage`.
    """
    repository = find_working_repository() if os.environ.get(PLUGIN_SWITCH) != PLUGIN_OFF else None
    root = workspace_root(repository.common) if repository is not None else ""
    if not is_workspace(root) or is_attached(client, root, texts):
        command = [sys.executable, "-I", "-S", idle_server.__file__]
    else:
        given = ["mcp", os.path.realpath(root), "--client", client]
        command = [*isolated_program(), *own_program(), *given]
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606  # a server of this package
