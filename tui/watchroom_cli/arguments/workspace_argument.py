"""The argument that names a workspace. The default is the nearest workspace.

A workspace is named by its folder, by the address of its database, or by a working tree of its repository.
"""

from __future__ import annotations

import os
from argparse import OPTIONAL, Action, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from watchroom.features.trees import place
from watchroom.features.trees.place import RepositoryPlace, find_repository, workspace_at, workspace_root
from watchroom.kernel.journal import is_server_address
from watchroom.texts import Catalogue


class WorkspaceArgument(Action):
    """A positional argument for the folder or the address of a workspace.

    ``finds_nearest``: returns the default, or None.
    """

    finds_nearest: Callable[[], str | None] = staticmethod(lambda: find_workspace())

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)


class RepositoryArgument(WorkspaceArgument):
    """A `WorkspaceArgument` of commands that create the workspace of a repository. The default can be the
    future workspace of the repository around the working directory."""

    finds_nearest = staticmethod(lambda: find_workspace() or _future_workspace())


def add_workspace_argument(
    parser: ArgumentParser,
    texts: Catalogue,
    help_key: str = "cli.argument.nearest",
    action: type[WorkspaceArgument] = WorkspaceArgument,
) -> None:
    """Add the argument ``dir`` for a workspace. ``action``: the class that finds the default."""
    parser.add_argument("dir", nargs=OPTIONAL, action=action, metavar="DIR", help=texts(help_key))


def is_workspace_place(value: str) -> bool:
    """Return whether ``value`` is a workspace's folder, a database's address, or a folder of a repository
    that has a workspace."""
    return is_server_address(value) or workspace_at(value) is not None


def workspace_of(value: str) -> str:
    """Return the folder or address of the workspace that ``value`` names. Return ``value`` if it names no
    workspace."""
    return value if is_server_address(value) else workspace_at(value) or value


def absolute_workspace(value: str) -> str:
    """Return the workspace's folder as an absolute path. The address of a database is returned unchanged."""
    return value if is_server_address(value) else os.path.abspath(value)


def find_workspace() -> str | None:
    """Return the nearest workspace around the working directory, None if there is none."""
    try:
        folder = os.getcwd()
    except OSError:
        # The folder was removed, or cannot be read.
        return None
    return place.find_workspace(folder)


def find_working_repository() -> RepositoryPlace | None:
    """Return the repository around the working directory, None if there is none."""
    try:
        return find_repository(os.getcwd())
    except OSError:
        # The folder was removed, or cannot be read.
        return None


def _future_workspace() -> str | None:
    repository = find_working_repository()
    return workspace_root(repository.common) if repository is not None else None
