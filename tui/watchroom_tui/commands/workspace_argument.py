"""The argument that names a workspace: without it, the nearest one."""

from __future__ import annotations

import os
from argparse import OPTIONAL, Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from watchroom.checkout.location import is_workspace
from watchroom.journal import is_server_address
from watchroom.texts import Catalogue


class WorkspaceArgument(Action):
    """A positional argument that is the folder or the address of a workspace."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)


def add_workspace_argument(
    parser: ArgumentParser, texts: Catalogue, help_key: str = "cli.argument.nearest"
) -> None:
    """Add the argument ``dir``, a workspace; without it, the one of `find_workspace`."""
    parser.add_argument("dir", nargs=OPTIONAL, action=WorkspaceArgument, metavar="DIR", help=texts(help_key))


def is_workspace_place(value: str) -> bool:
    """Return whether ``value`` is the folder of a workspace, or the address of a database."""
    return is_server_address(value) or is_workspace(value)


def find_workspace() -> str | None:
    """The folder of the workspace that the working directory is in, or the nearest one above; None where
    there is none."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed, or may not be read: who names a workspace needs none here
        return None
    while not is_workspace(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder
