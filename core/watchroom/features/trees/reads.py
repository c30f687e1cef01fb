"""Details for front ends: the changes in working trees since HEAD, their authors, and the author of each
line.

All functions read the journal and start git, so do not call them on an event loop.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from watchroom.algorithms.merge import split_lines
from watchroom.algorithms.weave import Weave
from watchroom.features.reverts.rules import is_revert_row
from watchroom.features.trees.commits import AgentCommits, CommitPlan
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_merge import GitMerger
from watchroom.features.trees.line_rules import UNKNOWN, FileChanges
from watchroom.features.trees.place import TREE_FILE
from watchroom.features.trees.rows import (
    ADD_TREE,
    BASELINE,
    REPO,
    SETUP_TREE,
    TREE,
    Tree,
    read_setup,
    read_tree,
    repo_path,
    split_repo_path,
)
from watchroom.features.trees.tree_states import Word, list_places
from watchroom.features.trees.view import GIT_AUTHOR, NO_AGENTS, Author, author_of, is_linked, join_authors
from watchroom.features.trees.write_rules import MAX_PREDICTED_CHARACTERS, Clash, find_clashes
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.kernel.rules.details import get_ints
from watchroom.kernel.rules.file_versions import is_text, unescape_path
from watchroom.model import Row
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable

if TYPE_CHECKING:
    from watchroom.features.config.store import Store

ChangeKind: TypeAlias = Literal["added", "modified", "deleted"]
_PAGE: Final = 500


class AuthorChanges(NamedTuple):
    """The uncommitted lines that an author added and removed. Both are 0 in binary files."""

    author: Author
    added: int = 0
    removed: int = 0


class ChangedFile(NamedTuple):
    """A file that differs from HEAD.

    - ``tree``, ``name``: the id of its tree, and its path there.
    - ``kind``: the kind of change since HEAD.
    - ``authors``: the authors of the changes, most lines first.
    - ``head``: the row of its newest version.
    - ``has_conflict``: a conflict on it is open.
    """

    tree: str
    name: str
    kind: ChangeKind
    authors: tuple[AuthorChanges, ...]
    head: Row
    has_conflict: bool = False


class TreeState(NamedTuple):
    """A working tree and its uncommitted changes.

    - ``agents``: the agents with uncommitted work, in alphabetical order.
    - ``changed``: the number of files that differ from HEAD.
    """

    tree: Tree
    agents: tuple[str, ...]
    changed: int


class FileLine(NamedTuple):
    """A line of a file.

    - ``text``: without its line feed.
    - ``row``: the row of the version that added it; None if it is older than the first version.
    - ``is_committed``: whether HEAD has it.
    """

    text: str
    author: Author
    row: Row | None
    is_committed: bool


class FileText(NamedTuple):
    """A text file of a tree.

    - ``head``, ``text``: the text in HEAD and in the newest version; None if there is no file, or it is
      binary.
    - ``lines``: the lines of ``text``.
    """

    head: str | None
    text: str | None
    lines: tuple[FileLine, ...]


class TreeReader:
    """Reads the changes in the working trees of a repository. May be used from any thread.

    ``journal``: the rows.

    Methods raise `GitError`, `JournalError`, OSError.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # Plans of commits read only the journal and contents of a store.
        self._commits = AgentCommits(cast("Store", _JournalStore(journal)))
        self._lock = Lock()
        self._known: dict[str, tuple[object, dict[str, FileChanges]]] = {}

    # -- trees

    def list_trees(self) -> list[Tree]:
        """Return the trees that exist on this machine, by id."""
        return [tree for tree, _ in self._list_open()]

    def find_tree(self, name: str) -> Tree | None:
        """Return the tree with this id, folder, branch or name of its folder; None if there is none."""
        folder, trees = os.path.realpath(name), self.list_trees()
        found = (each for each in trees if name in (each.id, each.branch) or folder == each.folder)
        named = (each for each in trees if name == os.path.basename(each.folder))
        return next(found, None) or next(named, None)

    def find_file(self, path: str) -> tuple[Tree, str] | None:
        """Return the tree of the file at ``path``, and its name there. None if it is in no tree."""
        folder, name = os.path.split(os.path.abspath(path))
        place = os.path.join(os.path.realpath(folder), name)
        inside = [each for each in self.list_trees() if f"{place}/".startswith(f"{each.folder}/")]
        if not inside:
            return None
        tree = max(inside, key=lambda each: len(each.folder))
        return tree, os.path.relpath(place, tree.folder)

    def describe_trees(self) -> list[TreeState]:
        """Return the trees with their uncommitted changes."""
        found = []
        for tree, _ in self._list_open():
            changed = self.list_changes(tree.id)
            agents = {change.author.actor for file in changed for change in file.authors}
            found.append(TreeState(tree, tuple(sorted(agents - {*NO_AGENTS})), len(changed)))
        return found

    def read_words(self) -> dict[str, tuple[Word, ...]]:
        """Return the unusual states of each tree on this machine, by its id. Trees whose folder is gone are
        included."""
        trees = [
            read_tree(row.path, self._journal.content(row.seq) or "") for row in self._journal.heads(TREE)
        ]
        shared = {_common_folder(each) for each in trees if each.folder}
        places = [place for each in shared if os.path.isdir(each) for place in list_places(each)]
        return {
            place.id: (*place.words, *(("setup_failed",) if self._has_failed_setup(place.id) else ()))
            for place in places
            if place.id
        }

    def _has_failed_setup(self, tree: str) -> bool:
        added = (row for row in self._journal.history(TREE, tree) if row.tool == ADD_TREE)
        row = next(added, None)
        note = self._journal.last_note(TREE, tree, row.actor, SETUP_TREE) if row is not None else None
        return note is not None and read_setup(note).status != 0

    def _list_open(self) -> list[tuple[Tree, GitTree]]:
        found = []
        for row in self._journal.heads(TREE):
            tree = read_tree(row.path, self._journal.content(row.seq) or "")
            if tree.folder and _read_id(tree.git) == tree.id:
                git = GitTree.find(tree.folder)
                if git is not None and git.git == os.path.realpath(tree.git):
                    state = git.read_state()
                    found.append((tree._replace(branch=state.branch, head=state.head), git))
        return found

    def open_tree(self, tree: str) -> GitTree | None:
        """Return git's view of the tree with this id, None if it is gone."""
        return next((git for each, git in self._list_open() if each.id == tree), None)

    # -- changes

    def list_changes(self, tree: str, conflicts: Collection[str] = ()) -> tuple[ChangedFile, ...]:
        """Return the files of ``tree`` that differ from HEAD, by name.

        ``conflicts``: the paths of rows with open conflicts.
        """
        git = self.open_tree(tree)
        if git is None:
            return ()
        changes = self._compare(git, tree)
        # Read last, so that every changed file has a row here.
        heads = self._heads(tree)
        authors = {name: self._list_authors(heads[name], each) for name, each in changes.items()}
        if any(row.deleted or not is_text(row) for name, row in heads.items() if name not in changes):
            plan = self._commits.plan(git)
            authors |= dict(self._find_binary(plan, changes, heads))
        state = git.read_state()
        entries = git.list_tree(state.head, [*authors]) if state.head else {}
        return tuple(
            ChangedFile(
                tree,
                name,
                "deleted" if heads[name].deleted else "modified" if name in entries else "added",
                authors[name],
                heads[name],
                heads[name].path in conflicts,
            )
            for name in sorted(authors)
        )

    def _find_binary(
        self, plan: CommitPlan, texts: Collection[str], heads: Mapping[str, Row]
    ) -> Iterator[tuple[str, tuple[AuthorChanges, ...]]]:
        """Yield the changed binary files with their authors. ``texts``: the changed text files."""
        for path in (*(each.path for each in plan.files), *(each.path for each in plan.blocked)):
            if path not in texts and path in heads:
                yield path, (AuthorChanges(author_of(heads[path])),)

    def _heads(self, tree: str) -> dict[str, Row]:
        heads = self._journal.heads(REPO, repo_path(tree, ""))
        return {_name_of(row): row for row in heads}

    def _compare(self, git: GitTree, tree: str) -> dict[str, FileChanges]:
        """Return the uncommitted changes of text files. They are computed again only after a change in the
        tree."""
        newest = [
            self._journal.rows_before(self._journal.last_seq() + 1, limit=1, only=RowFilter(zone=zone))
            for zone in (REPO, TREE)
        ]
        state = git.read_state()
        key = ([row.seq for rows in newest for row in rows], state.head)
        with self._lock:
            known = self._known.get(tree)
            if known is not None and known[0] == key:
                return known[1]
            found = self._commits.list_changes(git)
            self._known[tree] = (key, found)
            return found

    def _list_authors(self, head: Row, changes: FileChanges) -> tuple[AuthorChanges, ...]:
        rows = {row.version: row for row in self._journal.history(REPO, head.path)}
        found = []
        for actor, count in changes.counts.items():
            mine = [rows[number] for number in changes.take({actor}).versions if number in rows]
            author = join_authors(map(author_of, mine)) if actor != UNKNOWN else GIT_AUTHOR
            if actor not in NO_AGENTS and author.actor != actor:
                # The text no longer has these versions, but the lines are still the author's.
                author = Author(actor, "tool")
            found.append(AuthorChanges(author, count.added, count.removed))
        return tuple(sorted(found, key=lambda each: (-each.added - each.removed, each.author.name)))

    # -- lines

    def read_file(self, tree: str, name: str) -> FileText:
        """Return the text of the file ``name`` in HEAD and now, and who wrote each line."""
        git = self.open_tree(tree)
        if git is None:
            return FileText(None, None, ())
        state = git.read_state()
        entries = git.list_tree(state.head, [name]) if state.head else {}
        head = _decode(git.read_blobs([name], entries=entries)[name])
        path = repo_path(tree, escape_unstorable(name, MAX_PATH_BYTES))
        versions = self._versions(path)
        if not versions:
            texts = (each.removesuffix("\n") for each in split_lines(head or ""))
            unchanged = (FileLine(each, GIT_AUTHOR, None, is_committed=True) for each in texts)
            return FileText(head, head, tuple(unchanged))
        newest, text = versions[-1]
        if newest.deleted or not is_text(newest):
            return FileText(head, None, ())
        changes = self._compare(git, tree).get(name)
        lines = changes.lines if changes is not None else ()
        committed = [each.adder is None for each in lines if each.remover is None]
        rows, found = attribute_lines(versions), split_lines(text or "")
        if len(committed) != len(found):
            committed = [changes is None] * len(found)
        return FileText(head, text, tuple(map(_file_line, found, rows, committed)))

    def find_clashes(self, tree: str, other: str, name: str) -> list[Clash]:
        """Return the lines of the file ``name`` in ``tree`` that conflict with its lines in the tree
        ``other``. Empty without a conflict of lines, such as for binary files and deletions."""
        ours, theirs = self.open_tree(tree), self.open_tree(other)
        if ours is None or theirs is None:
            return []
        heads = [each.read_state().head for each in (ours, theirs)]
        base = GitMerger(ours).find_base(heads[0], heads[1]) if all(heads) else ""
        before = _decode(ours.read_blobs([name], f"{base}:")[name]) if base else None
        texts = [
            before,
            *(self._newest_text(git, each, name) for git, each in ((ours, tree), (theirs, other))),
        ]
        known = [each for each in texts if each is not None and len(each) <= MAX_PREDICTED_CHARACTERS]
        return find_clashes(*known) if len(known) == len(texts) else []

    def _newest_text(self, git: GitTree, tree: str, name: str) -> str | None:
        """Return the newest text of a file, None if it has none."""
        row = self._journal.head(REPO, repo_path(tree, escape_unstorable(name, MAX_PATH_BYTES)))
        if row is not None:
            return self._journal.content(row.seq) if not row.deleted and is_text(row) else None
        head = git.read_state().head
        return _decode(git.read_blobs([name], f"{head}:")[name]) if head else None

    def list_names(self, tree: str) -> list[str]:
        """Return the names of the files of ``tree`` that have versions, and exist."""
        return sorted(name for name, row in self._heads(tree).items() if not row.deleted)

    def _versions(self, path: str) -> list[tuple[Row, str | None]]:
        found: list[tuple[Row, str | None]] = []
        while page := self._journal.versions(
            REPO, path, after=(found[-1][0].version or 0) if found else 0, limit=_PAGE
        ):
            found += page
        return found


class _JournalStore(NamedTuple):
    """The parts of a store that plans of commits read."""

    journal: Journal


def attribute_lines(versions: Sequence[tuple[Row, str | None]]) -> list[Row]:
    """Return, for each line of the newest of ``versions``, the version that added it.

    A line that a revert restores belongs to the version that wrote it. A missing final newline is ignored.
    """
    weave = Weave("")
    rows: dict[int, Row] = {}
    for row, content in versions:
        number = row.version or 0
        rows[number] = row
        text = (content or "") if is_text(row) else ""
        is_revert = is_revert_row(row)
        took, gave = (get_ints(row.detail, name) if is_revert else () for name in ("took", "gave"))
        weave.add(number, text if text.endswith("\n") or not text else f"{text}\n", took, gave)
    return [rows[each.adder] for each in weave.lines() if each.is_present(weave.off)]


def _file_line(line: str, row: Row, is_committed: bool) -> FileLine:
    brought = None if row.tool == BASELINE else row
    return FileLine(line.removesuffix("\n"), author_of(row), brought, is_committed)


def _common_folder(tree: Tree) -> str:
    """Return the git folder that ``tree`` shares with the other trees of its repository."""
    return os.path.dirname(os.path.dirname(tree.git)) if is_linked(tree) else tree.git


def _name_of(row: Row) -> str:
    return os.fsdecode(unescape_path(split_repo_path(row.path)[1]))


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None or b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _read_id(git: str) -> str:
    """Return the id in the git folder ``git``, empty if there is none."""
    try:
        with open(os.path.join(git, TREE_FILE), encoding="ascii", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""
