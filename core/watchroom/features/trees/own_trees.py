"""`OwnTrees`: adds working trees for agents, lists them, and removes them without a loss.

A tree is a linked working tree of git on its own branch, outside of the main tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import GitError, InvalidRepository, InvalidTree, UnknownTree
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.place import repository_at
from watchroom.features.trees.port_blocks import PortBlock, PortBlocks
from watchroom.features.trees.rows import (
    ADD_TREE,
    PREDICT,
    REMOVE_TREE,
    SETUP_TREE,
    TREE,
    Addition,
    Prediction,
    Removal,
    Setup,
    Tree,
    read_addition,
    read_prediction,
    read_removal,
    read_setup,
)
from watchroom.features.trees.standing import Standing, read_standing
from watchroom.features.trees.tree_files import (
    CHECKOUT_SETTINGS,
    CHECKOUT_VARIABLES,
    GIT_SECONDS,
    AddedFiles,
    Included,
    TreeFiller,
    list_ignored_names,
    list_included,
)
from watchroom.features.trees.tree_removal import (
    RemovalPlan,
    TreeRemoval,
    delete_folder,
    is_final,
    remove_worktree,
)
from watchroom.features.trees.tree_states import TreePlace, Word, is_shallow, list_places
from watchroom.features.trees.trials import remove_trials
from watchroom.features.trees.working_state import CopiedState, copy_working_state
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.model import SYSTEM, Json, Row
from watchroom.platform import Platform
from watchroom.platform.child_process import run_child

if TYPE_CHECKING:
    from watchroom.features.config.store import Store
    from watchroom.features.trees.rules import TreeSettings
    from watchroom.features.trees.service import Trees

NAME_VARIABLE: Final = "WATCHROOM_TREE"
FOLDER_VARIABLE: Final = "WATCHROOM_TREE_FOLDER"
FIRST_PORT_VARIABLE: Final = "WATCHROOM_PORT_FIRST"
PORTS_VARIABLE: Final = "WATCHROOM_PORT_COUNT"
_SUFFIX: Final = ".trees"
_TAIL_BYTES: Final = 64 * 1024
_MERGED: Final = "exec 2>&1\n"
"""A line of the shell that sends errors to standard output."""
_UPDATED: Final = re.compile(rb"\((\d+)/(\d+)\)")
"""Matches the progress that git prints during a checkout."""
_BUSY_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2
_MAX_PREDICTIONS: Final = 1000
"""Maximum number of predictions that are read per tree."""

Step: TypeAlias = Literal["checkout", "include", "setup"]
"""A part of the work of adding a tree: its files are written, ignored files are copied, or the setup runs."""


class OwnTree(NamedTuple):
    """A working tree.

    - ``name``: the name that it was added with; for others the name of their folder.
    - ``id``: its id.
    - ``folder``: its absolute path.
    - ``git``: its own git folder.
    - ``branch``: empty if HEAD is detached.
    - ``ports``: its ports, None if it has none.
    """

    name: str
    id: str
    folder: str
    git: str
    branch: str
    ports: PortBlock | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of programs that work in the tree."""
        ports = self.ports or PortBlock(0, 0)
        return {
            NAME_VARIABLE: self.name,
            FOLDER_VARIABLE: self.folder,
            FIRST_PORT_VARIABLE: str(ports.first) if ports.size else "",
            PORTS_VARIABLE: str(ports.size),
        }


class SetupOutcome(NamedTuple):
    """The result of a setup command. ``output``: the last 64 KiB of its output."""

    status: int
    seconds: float
    output: str


class AddedTree(NamedTuple):
    """A working tree that is ready.

    - ``is_new``: whether it was added by this call.
    - ``cloned``: the number of tracked files that are clones.
    - ``included``: the ignored files that it got.
    - ``setup``: the result of its setup command; None if it was not run.
    - ``restored``: the paths of the uncommitted files that it got from a removed tree.
    - ``forked``: the uncommitted files that it got from another tree; None if it was not forked.
    """

    tree: OwnTree
    is_new: bool
    cloned: int = 0
    included: Included = Included()
    setup: SetupOutcome | None = None
    restored: tuple[str, ...] = ()
    forked: CopiedState | None = None


class TreeConflict(NamedTuple):
    """A predicted conflict with another tree.

    - ``name``, ``id``: the other tree.
    - ``paths``: the files that conflict.
    """

    name: str
    id: str
    paths: tuple[str, ...]


class TreeListing(NamedTuple):
    """A working tree in a list.

    - ``place``: its location, and its unusual states.
    - ``agents``: the agents that work in it.
    - ``standing``: the numbers of commits ahead and behind; None if there is no branch to compare with.
    - ``changed``: the number of uncommitted files; None if its folder is gone.
    - ``conflicts``: the predicted conflicts with other trees.
    """

    name: str
    place: TreePlace
    agents: tuple[str, ...] = ()
    standing: Standing | None = None
    changed: int | None = None
    ports: PortBlock | None = None
    conflicts: tuple[TreeConflict, ...] = ()

    @property
    def words(self) -> tuple[Word, ...]:
        """The unusual states of the tree."""
        return self.place.words


class Listeners(NamedTuple):
    """Called while a tree is added.

    - ``on_step``: with the current part of the work, the amount that is done, and the total; 0 if unknown.
    - ``on_output``: with each part of the output of the setup command.
    """

    on_step: Callable[[Step, int, int], object] = lambda step, done, of: None
    on_output: Callable[[bytes], object] = lambda piece: None


SILENT: Final = Listeners()


class OwnTrees:
    """Adds, lists and removes working trees of the repository of ``trees``.

    - ``store``: the journal.
    - ``root``: the workspace's folder.
    - ``platform``: clones files and locks.
    - ``state``: the folder with this user's blocks of ports.

        added = workspace.own_trees.add(CallContext("human:dana"), "login", "/home/dana/project")
        print(added.tree.folder)
    """

    def __init__(self, store: Store, trees: Trees, root: str, platform: Platform, state: str) -> None:
        self._store = store
        self._root = root
        self._trees = trees
        self._platform = platform
        self._blocks = PortBlocks(state, platform)

    @property
    def _settings(self) -> TreeSettings:
        return self._store.registry.current().trees

    # -- find and list

    @property
    def common(self) -> str:
        """The git folder that all trees share. Raise `InvalidRepository` if there is none."""
        common = self._trees.common
        if not common:
            raise InvalidRepository(path=self._root, rule="not_a_repository")
        return common

    @property
    def is_shallow(self) -> bool:
        """Whether the repository lacks older commits, so that commits cannot all be counted."""
        return is_shallow(self.common)

    def find(self, name: str) -> OwnTree | None:
        """Return the linked tree with this name, branch, folder or id, None if there is none. Raise
        `GitError`, OSError."""
        found = self._find(name)
        return None if found is None or not found.is_there else self._own(found)

    def find_commit(self, here: str, name: str = "") -> str:
        """Return the id of the commit ``name``, empty if there is none.

        Default: HEAD of the tree with the folder ``here``.
        """
        return "" if name.startswith("-") else _resolve(here, f"{name or 'HEAD'}^{{commit}}")

    def list_trees(self, agents: Sequence[tuple[str, str]] = ()) -> list[TreeListing]:
        """Return all working trees, the main one first, including trees that clients made.

        ``agents``: the agents at work, each with the folder in which it works.

        Raise `GitError`, OSError.
        """
        places = list_places(self.common)
        trees = [Tree(each.id, each.folder, each.git, each.branch, each.head) for each in places]
        homes: dict[str, list[str]] = {}
        for agent, folder in agents:
            home = _home_of(places, folder)
            homes.setdefault(home, []).append(agent)
        predictions = self._read_predictions(each.id for each in places)
        names = {each.id: self._name_of(each) for each in places if each.id}
        found = []
        for place, tree in zip(places, trees, strict=True):
            git = place.tree
            found.append(
                TreeListing(
                    self._name_of(place),
                    self._with_setup(place),
                    tuple(sorted(homes.get(place.folder, ()))),
                    read_standing(tree, trees) if place.is_there else None,
                    len({*git.list_changed(), *git.list_staged()}) if place.is_there else None,
                    self._blocks.find(git) if place.is_there and place.id else None,
                    _conflicts_of(place.id, names, predictions),
                )
            )
        return found

    def _read_predictions(self, trees: Iterable[str]) -> list[Prediction]:
        """Return the newest prediction of each pair of ``trees``."""
        found: dict[tuple[str, str], Prediction] = {}
        for tree in filter(None, trees):
            notes = self._store.journal.notes(TREE, tree, SYSTEM, PREDICT, limit=_MAX_PREDICTIONS)
            for prediction in map(read_prediction, notes):
                found.setdefault(prediction.trees, prediction)
        return [*found.values()]

    def _find(self, name: str) -> TreePlace | None:
        linked = [each for each in list_places(self.common) if not each.is_main]
        folder = os.path.realpath(name)
        # A name that a person gave precedes what git and clients chose.
        matches: tuple[Callable[[TreePlace], bool], ...] = (
            lambda each: self._name_of(each) == name,
            lambda each: each.branch == name,
            lambda each: each.folder == folder,
            lambda each: each.id == name,
        )
        return next((each for matches_name in matches for each in linked if matches_name(each)), None)

    def _name_of(self, place: TreePlace) -> str:
        row = self._find_addition(place.id)
        return (read_addition(row).name if row is not None else "") or os.path.basename(place.folder)

    def _find_addition(self, tree: str) -> Row | None:
        """Return the row by which the tree with this id was added, None for a tree that others made."""
        rows = self._store.journal.history(TREE, tree) if tree else []
        return next((row for row in rows if row.tool == ADD_TREE), None)

    def _with_setup(self, place: TreePlace) -> TreePlace:
        """Return ``place``, with the state ``setup_failed`` if the setup of the tree failed."""
        added = self._find_addition(place.id)
        if added is None:
            return place
        note = self._store.journal.last_note(TREE, place.id, added.actor, SETUP_TREE)
        is_failed = note is not None and read_setup(note).status != 0
        return place._replace(words=(*place.words, "setup_failed")) if is_failed else place

    def _own(self, place: TreePlace) -> OwnTree:
        tree_id = place.tree.tree_id()
        name = self._name_of(place._replace(id=tree_id))
        return OwnTree(name, tree_id, place.folder, place.git, place.branch, self._blocks.find(place.tree))

    # -- add

    def enter(self, call: CallContext, name: str, here: str, listeners: Listeners = SILENT) -> AddedTree:
        """Return the tree ``name``. Add it if it does not exist. See `add`."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            found = self.find(name)
            if found is not None and not self._store.journal.is_claimed(_key(name)):
                if not AddedFiles.read(found.git).is_complete:
                    raise InvalidTree(name=name, rule="tree_incomplete")
                return AddedTree(self._with_ports(found), is_new=False)
            try:
                return self.add(call, name, here, listeners=listeners)
            except InvalidTree as error:
                # Another command adds it at the same time.
                is_busy = error.values["rule"] in ("tree_busy", "tree_exists")
                if not is_busy or time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_SECONDS)

    def _with_ports(self, tree: OwnTree) -> OwnTree:
        settings = self._settings
        git = GitTree.find(tree.folder)
        if tree.ports is not None or not settings.ports or git is None:
            return tree
        return tree._replace(ports=self._blocks.take(git, settings.ports, settings.first_port))

    def add(
        self,
        call: CallContext,
        name: str,
        here: str,
        start: str = "",
        *,
        restore: bool = False,
        fork: bool = False,
        listeners: Listeners = SILENT,
    ) -> AddedTree:
        """Add the tree ``name`` with a branch of this name. If the branch exists, the tree checks it out as
        it is.

        - ``call``: who adds it.
        - ``here``: a folder of the repository. A new branch begins at the HEAD of its tree.
        - ``start``: the commit, branch or tag at which a new branch begins instead.
        - ``restore``: restore the uncommitted files of the last removed tree of this name.
        - ``fork``: copy the uncommitted and new files of the tree around ``here``.
        - ``listeners``: called while it is added.

        A failed setup command does not remove the tree. Raise `InvalidTree`, `GitError`, `NoFreePorts`,
        `JournalError`, OSError.
        """
        with self._store.journal.claim(_key(name)) as is_mine:
            if not is_mine:
                raise InvalidTree(name=name, rule="tree_busy")
            removed = self._find_removed(name) if restore else None
            if restore and removed is None:
                raise InvalidTree(name=name, rule="tree_not_removed")
            forked = GitTree.find(here) if fork else None
            start = "HEAD" if forked is not None else start
            place = self._check_new(name, here, start)
            with self._created(name, here, start, place) as (tree, commit):
                added = self._fill(call, name, tree, commit, listeners, forked)
                if removed is not None:
                    added = added._replace(restored=self._restore(added.tree, removed))
            self._trees.look_after()
            setup = self._set_up(call, added.tree, tree, listeners)
            return added._replace(setup=setup)

    def _check_new(self, name: str, here: str, start: str) -> str:
        """Return the folder of the new tree. Raise `InvalidTree`."""
        if run_git(("check-ref-format", f"refs/heads/{name}"), folder=here, accepted=None).status or (
            name.startswith("-")
        ):
            raise InvalidTree(name=name, rule="tree_name")
        found = self._find(name)
        if found is not None:
            is_own = found.branch != name or self._name_of(found) == name
            rule = "tree_exists" if found.is_there else "tree_gone"
            rule = "tree_incomplete" if "incomplete" in found.words else rule
            raise InvalidTree(name=name, rule=rule if is_own else "tree_branch_used")
        has_branch = _resolve(here, f"refs/heads/{name}")
        if has_branch and any(each.branch == name for each in list_places(self.common)):
            raise InvalidTree(name=name, rule="tree_branch_used")
        if has_branch and start:
            raise InvalidTree(name=name, rule="tree_branch")
        if not has_branch and not self.find_commit(here, start):
            raise InvalidTree(name=name, rule="tree_start")
        place = os.path.join(self.folder(), name.replace("/", "-"))
        if os.path.lexists(place):
            raise InvalidTree(name=name, rule="tree_folder")
        return place

    def folder(self) -> str:
        """Return the folder in which new trees are made."""
        common = self.common
        is_bare = os.path.basename(common) != ".git"
        main = common if is_bare else os.path.dirname(common)
        given = os.path.expanduser(self._settings.folder)
        return os.path.normpath(
            os.path.join(main, given) if given else main.removesuffix(".git").rstrip("/") + _SUFFIX
        )

    @contextlib.contextmanager
    def _created(self, name: str, here: str, start: str, place: str) -> Iterator[tuple[GitTree, str]]:
        """Make git create the tree without files. Undo this if the context fails. Yields the tree, and the
        commit at which a new branch begins."""
        above = os.path.dirname(place)
        os.makedirs(above, exist_ok=True)
        is_old = bool(_resolve(here, f"refs/heads/{name}"))
        commit = "" if is_old else _resolve(here, f"{start or 'HEAD'}^{{commit}}")
        words = (place, name) if is_old else ("-b", name, place, start or "HEAD")
        try:
            _checkout(here, "worktree", "add", "--quiet", "--no-checkout", *words)
            tree = GitTree.find(place)
            if tree is None:
                raise GitError(reason=f"git worktree add {place}")
            AddedFiles(is_complete=False).write(tree.git)
            yield tree, commit
        except BaseException:
            self._take_back(name, place, commit)
            raise

    def _take_back(self, name: str, place: str, commit: str) -> None:
        """Remove a tree that was not finished, and its branch if it is new."""
        common = self.common
        tree = GitTree.find(place)
        if tree is not None:
            # The error that is the reason is reported. A tree that stays is listed.
            with contextlib.suppress(GitError, OSError):
                remove_worktree(common, place, tree.git)
        if commit:
            run_git(
                ("update-ref", "-d", f"refs/heads/{name}", commit),
                folder=common,
                variables={"GIT_DIR": common},
                accepted=None,
            )
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(place))

    def _fill(
        self,
        call: CallContext,
        name: str,
        tree: GitTree,
        commit: str,
        listeners: Listeners,
        forked: GitTree | None,
    ) -> AddedTree:
        """Write the files of the new tree, give it ports, and record it. ``forked``: the tree whose
        uncommitted files it gets."""
        settings = self._settings
        source = self._find_source(tree)
        cloned, included = 0, Included()
        filler = None if source is None else TreeFiller(source, tree.folder, self._platform)
        listeners.on_step("checkout", 0, 0)
        if filler is not None and filler.can_clone:
            cloned = filler.clone_tracked(tree, lambda done, of: listeners.on_step("checkout", done, of))
        _checkout(
            *(tree.folder, "checkout", "--force", "--progress", "HEAD"),
            on_errors=lambda piece: _report_checkout(piece, listeners),
        )
        if filler is not None and source is not None:
            names = list_included(source)
            included = filler.include(
                names,
                settings.linked,
                settings.max_copied_bytes,
                lambda done, of: listeners.on_step("include", done, of),
            )
        copied = copy_working_state(forked, tree) if forked is not None else None
        if copied is not None and not copied.is_stable:
            raise InvalidTree(name=name, rule="tree_moving")
        ports = self._blocks.take(tree, settings.ports, settings.first_port) if settings.ports else None
        first, size = ports or (0, 0)
        addition = Addition(name, commit, first, size, forked=forked.tree_id() if forked is not None else "")
        own = OwnTree(name, tree.tree_id(), tree.folder, tree.git, tree.read_state().branch, ports)
        self._record(call.with_tool(ADD_TREE), tree, addition)
        AddedFiles(included.copied, included.linked).write(tree.git)
        return AddedTree(own, is_new=True, cloned=cloned, included=included, forked=copied)

    def _find_source(self, tree: GitTree) -> GitTree | None:
        """Return the main tree, None in a bare repository."""
        main = os.path.dirname(tree.common)
        place = repository_at(main) if os.path.basename(tree.common) == ".git" else None
        return None if place is None else GitTree(main, tree.common, tree.common)

    def _record(self, call: CallContext, tree: GitTree, addition: Addition) -> None:
        state = tree.read_state()
        found = Tree(tree.tree_id(), tree.folder, tree.git, state.branch, state.head)
        self._write(call, found, addition.name, addition.detail)

    def _write(self, call: CallContext, tree: Tree, name: str, detail: Mapping[str, Json]) -> Row:
        """Write the next version of the row of ``tree``. Try again if another process writes a version
        first."""
        content = json.dumps(tree.content, ensure_ascii=False)
        while True:
            head = self._store.journal.head(TREE, tree.id)
            version = (head.version or 0) if head is not None else 0
            row = self._store.commits.commit(call.write(TREE, tree.id, content, name, version, detail)).row
            if row.outcome == "ok":
                return row

    def _set_up(
        self, call: CallContext, own: OwnTree, tree: GitTree, listeners: Listeners
    ) -> SetupOutcome | None:
        """Run the setup command in the new tree, and record its result."""
        command = self._settings.setup
        if not command:
            return None
        listeners.on_step("setup", 0, 0)
        tail = bytearray()

        def take(piece: bytes) -> None:
            tail.extend(piece)
            del tail[:-_TAIL_BYTES]
            listeners.on_output(piece)

        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        began = time.monotonic()
        done = run_child(
            ["/bin/sh", "-c", _MERGED + command],
            folder=own.folder,
            environment={**inherited, **own.variables},
            on_output=take,
        )
        outcome = SetupOutcome(done.status, time.monotonic() - began, tail.decode("utf-8", "replace"))
        made = tuple(list_ignored_names(tree))
        AddedFiles.read(tree.git)._replace(made=made).write(tree.git)
        setup = Setup(command, done.status, outcome.seconds)
        note = call.with_tool(SETUP_TREE).note(TREE, own.id, message=own.name, detail=setup.detail)
        self._store.commits.commit(note)
        return outcome

    # -- restore

    def _find_removed(self, name: str) -> Row | None:
        """Return the row of the newest removal of a tree ``name``, None if there is none."""
        journal = self._store.journal
        only = RowFilter(zone=TREE, tool=REMOVE_TREE, outcome="ok")
        before = journal.last_seq() + 1
        while page := journal.rows_before(before, limit=100, only=only):
            for row in page:
                if read_removal(row).name == name:
                    return row
            before = page[-1].seq
        return None

    def _restore(self, own: OwnTree, removed: Row) -> tuple[str, ...]:
        """Write the uncommitted files of a removed tree into the new one. Return their names."""
        git = GitTree.find(own.folder)
        recorder = self._trees.tree_at(own.folder)
        if git is None or recorder is None:
            raise UnknownTree(name=own.name, known="-")
        found = TreeRemoval(self._store, self._trees).list_uncommitted(git, removed)
        # A file may be where a deleted file had its folder.
        for name, data, executable in sorted(found, key=lambda each: each[1] is not None):
            recorder.write(name, data, executable=executable)
        return tuple(name for name, _, _ in found)

    # -- remove

    def plan_removal(self, name: str, agents: Sequence[tuple[str, str]] = ()) -> RemovalPlan:
        """Record the uncommitted files of the tree ``name``, and return the plan of its removal. Nothing is
        removed.

        ``agents``: as in `list_trees`.

        Raise `UnknownTree`, `GitError`, `JournalError`, OSError.
        """
        places = list_places(self.common)
        place = self._find(name)
        if place is None:
            known = ", ".join(self._name_of(each) for each in places if not each.is_main)
            raise UnknownTree(name=name, known=known or "-")
        inside = tuple(sorted(agent for agent, folder in agents if _home_of(places, folder) == place.folder))
        main = next((each for each in places if each.is_main), None)
        removal = TreeRemoval(self._store, self._trees)
        return removal.plan(self._name_of(place), place, main, inside, self._settings.caches)

    def remove(self, call: CallContext, plan: RemovalPlan, *, force: bool = False) -> Removal:
        """Remove the tree of ``plan``. Its branch stays, and its uncommitted files are in the journal.

        ``force``: ignore all obstacles that are not final.

        Raise `TreeKept` if there is an obstacle, even one that came after the plan, `InvalidTree` if another
        command removes it, `GitError`, `JournalError`, OSError.
        """
        with self._store.journal.claim(_key(plan.name)) as is_mine:
            if not is_mine:
                raise InvalidTree(name=plan.name, rule="tree_busy")
            removal = TreeRemoval(self._store, self._trees)
            removal.check(plan, force=force)
            kept = removal.keep_commits(plan)
            forced = tuple(each.kind for each in plan.obstacles if not is_final(each.kind))
            done = Removal(plan.name, plan.place.folder, len(plan.uncommitted), forced, kept)
            place = plan.place
            if place.is_there:
                remove_trials(place.tree)
            with removal.put_aside(plan) as aside:
                gone = Tree(place.id or place.tree.tree_id(), "", place.git, place.branch, place.head)
                self._write(call.with_tool(REMOVE_TREE), gone, plan.name, done.detail)
                removal.forget(plan)
            if aside:
                delete_folder(aside)
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(aside))
            self._trees.look_after()
            self._blocks.clean()
            return done


def _key(name: str) -> str:
    return f"own-tree:{name}"


def _home_of(places: Sequence[TreePlace], folder: str) -> str:
    """Return the folder of the innermost tree that ``folder`` is in, empty if it is in none."""
    inside = [each.folder for each in places if f"{folder}/".startswith(f"{each.folder}/")]
    return max(inside, key=len, default="")


def _conflicts_of(
    tree: str, names: Mapping[str, str], predictions: Iterable[Prediction]
) -> tuple[TreeConflict, ...]:
    """Return the conflicts of ``tree`` with the other trees in ``names``, which maps ids to names."""
    found = []
    for each in predictions:
        if tree in each.trees and each.paths:
            other = each.trees[each.trees[0] == tree]
            found += [TreeConflict(names[other], other, each.paths)] if other in names else []
    return tuple(sorted(found))


def _resolve(here: str, revision: str) -> str:
    """Return the id of ``revision``, empty if it does not exist."""
    done = run_git(
        ("rev-parse", "--verify", "--quiet", "--end-of-options", revision), folder=here, accepted=None
    )
    return done.output.decode("ascii", "replace").strip() if done.status == 0 else ""


def _checkout(folder: str, *arguments: str, on_errors: Callable[[bytes], object] | None = None) -> None:
    run_git(
        arguments,
        folder=folder,
        variables=CHECKOUT_VARIABLES,
        settings=CHECKOUT_SETTINGS,
        timeout=GIT_SECONDS,
        on_errors=on_errors,
    )


def _report_checkout(piece: bytes, listeners: Listeners) -> None:
    found = _UPDATED.findall(piece)
    if found:
        listeners.on_step("checkout", int(found[-1][0]), int(found[-1][1]))
