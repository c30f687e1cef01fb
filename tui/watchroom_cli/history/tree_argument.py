"""The argument that names a working tree: open the repository's workspace, and choose a tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from watchroom.features.trees.reads import TreeReader
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

if TYPE_CHECKING:
    from watchroom.features.trees.rows import Tree


@contextmanager
def open_trees(root: str, texts: Catalogue) -> Iterator[tuple[Workspace, TreeReader]]:
    """Open the workspace of a repository, and record the changes in its trees. Raise `WrongUsage`,
    `WatchroomError`."""
    with Workspace.open(root, create=False, scan=False) as workspace:
        if not workspace.trees.common:
            raise WrongUsage(texts("cli.trees.no_repository"))
        workspace.trees.refresh_all()
        yield workspace, TreeReader(workspace.journal)


def choose_tree(reader: TreeReader, name: str | None, texts: Catalogue) -> Tree:
    """Return the tree with the id, folder or branch ``name``. The default is the tree of the working
    directory, or otherwise the only tree. Raise `WrongUsage`."""
    found = reader.find_tree(name) if name else None
    trees = reader.list_trees()
    if name is None:
        here = reader.find_file(os.path.join(os.getcwd(), "x"))
        found = here[0] if here is not None else trees[0] if len(trees) == 1 else None
    if found is None:
        known = ", ".join(sanitize(each.branch or each.id) for each in trees)
        key = "cli.trees.unknown" if name else "cli.trees.which"
        raise WrongUsage(texts(key, given=sanitize(name or ""), known=known or "-"))
    return found
