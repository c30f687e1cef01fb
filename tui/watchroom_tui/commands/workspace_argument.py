"""The argument that names a workspace: without it, the nearest one."""

from __future__ import annotations

import os
from argparse import ArgumentParser

from watchroom.checkout.location import is_workspace
from watchroom.texts import Catalogue


def add_workspace_argument(parser: ArgumentParser, texts: Catalogue) -> None:
    """Add the folder of a workspace, or its address; without one it is that of `find_workspace`."""
    nearest = find_workspace() or os.curdir
    parser.add_argument("dir", nargs="?", default=nearest, help=texts("cli.argument.nearest"))


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
