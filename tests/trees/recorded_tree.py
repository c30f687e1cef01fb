"""A working tree whose changes become rows at once, as a recorder that misses nothing would write them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from trees.git_repo import git
from watchroom import Workspace
from watchroom.features.config.store import Store
from watchroom.features.trees.commits import AgentCommits
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.rows import BASELINE, CHANGE, GRADE, REPO, repo_path
from watchroom.kernel.call_context import CallContext
from watchroom.model import SYSTEM, Json, Row, Write
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable

PERSON = "human:ann"


class RecordedTree:
    """The repository in ``folder``, with its journal."""

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        found = GitTree.find(str(folder))
        assert found is not None
        self.folder = folder
        self.tree = found
        self.store: Store = workspace._store
        self.commits = AgentCommits(self.store)
        self.id = found.tree_id()

    def write(self, author: str, path: str, data: bytes | None, *, executable: bool = False) -> None:
        """Let ``author`` write a file, or delete it."""
        target = self.folder / path
        if self._row(path) is None and (blob := self.tree.read_blobs([path])[path]) is not None:
            self._record(SYSTEM, BASELINE, path, blob, self.tree.list_index()[path].executable)
        if data is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755 if executable else 0o644)
        self._record(author, CHANGE, path, data, executable)

    def commit(self, *agents: str, branch: str | None = None) -> Row:
        """Commit the work of ``agents``, or all work."""
        call = CallContext(PERSON)
        return self.commits.commit(call, self.tree, agents or None, "work\n\nof agents", branch=branch)

    def full_tree(self) -> str:
        """Return the tree that ``git add --all`` makes of the disk."""
        index = str(self.folder / ".git" / "expected")
        git(self.folder, "read-tree", "HEAD", GIT_INDEX_FILE=index)
        git(self.folder, "add", "--all", GIT_INDEX_FILE=index)
        found = git(self.folder, "write-tree", GIT_INDEX_FILE=index)
        os.unlink(index)
        return found

    def _row(self, path: str) -> Row | None:
        return self.store.journal.head(REPO, self._path(path))

    def _path(self, path: str) -> str:
        return repo_path(self.id, escape_unstorable(path, MAX_PATH_BYTES))

    def _record(self, author: str, tool: str, path: str, data: bytes | None, executable: bool) -> None:
        detail: dict[str, Json] = {GRADE: "tool"} | ({"executable": True} if executable else {})
        content = None if data is None else data.decode("utf-8", "replace")
        if data is not None and content is not None and (b"\0" in data or content.encode() != data):
            self.store.journal.blobs.keep([data])
            content = "binary"
            detail |= {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        self.store.journal.append([Write(author, tool, REPO, self._path(path), content, detail=detail)])
