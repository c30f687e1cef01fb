"""`Races`: begins races, records their progress, and keeps the work of all agents when a person picks one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import GitError, InvalidRace, NoRaces, TreeKept, UnknownRace
from watchroom.features.races.content import compare, measure, write_content
from watchroom.features.races.reads import Race, RaceEntry, RaceReader, claim_key
from watchroom.features.races.rows import (
    BEGIN_RACE,
    CHECK_RACE,
    END_RACE,
    KEEP_RACE,
    MAX_PROMPT,
    PICK_RACE,
    REF_PREFIX,
    ChangeCounts,
    Entrant,
    EntryEnd,
    FinishState,
    Kept,
    RaceCheck,
    tree_name,
)
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.own_trees import SILENT, AddedTree, Listeners, OwnTree, OwnTrees
from watchroom.features.trees.rows import TREE
from watchroom.features.trees.tree_files import list_hidden
from watchroom.features.trees.tree_removal import Obstacle, ObstacleKind, RemovalPlan
from watchroom.features.trees.trials import LINKED, TrialOutcome, commit_content, run_trial
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json, Note
from watchroom.validation import escape_unstorable, extract_first_line

if TYPE_CHECKING:
    from watchroom.features.config.store import Store

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_MAX_SUBJECT: Final = 200
_TRIES: Final = 3
"""Maximum attempts to read the files of a tree while others change them."""
_IN_REF: Final[tuple[ObstacleKind, ...]] = ("not_kept", "commits")
"""The obstacles to the removal of a tree that no longer count once a ref has all of its files."""


class RacePlan(NamedTuple):
    """The parameters of a new race.

    - ``name``: the race's name.
    - ``prompt``: the prompt of all agents.
    - ``clients``: the client of each agent, with the client's own arguments.
    - ``timeout``: seconds for each client, and for each check.
    - ``check``: a command of the shell, empty for no check.
    - ``start``: the commit at which the trees begin, default HEAD.
    """

    name: str
    prompt: str
    clients: tuple[str, ...]
    timeout: float
    check: str = ""
    start: str = ""


class PutAway(NamedTuple):
    """The result of putting away a tree that was not picked. ``error``: the reason why its folder stays; None
    if it was removed."""

    kept: Kept
    plan: RemovalPlan
    error: TreeKept | None = None


class Races:
    """The races in the repository of ``trees``. ``store``: the journal."""

    def __init__(self, store: Store, trees: OwnTrees) -> None:
        self._store = store
        self._trees = trees
        self._reader = RaceReader(store.journal)

    # -- a race

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Claim the race ``name`` while it runs, or is changed. See `Journal.claim`."""
        return self._store.journal.claim(claim_key(name))

    def find(self, name: str = "") -> Race:
        """Return the race ``name``, default the newest. Raise `UnknownRace`."""
        names = self._reader.list_names()
        if not names:
            raise NoRaces
        race = self._reader.read(name or names[0])
        if race is None:
            raise UnknownRace(name=name, known=", ".join(names[:10]))
        return race

    def choose_name(self, here: str) -> str:
        """Return the lowest number that is not the name of a race and that no branch or ref of a race
        contains.

        ``here``: a folder of the repository. Raise `GitError`.
        """
        refs = _list_refs(here, "refs/heads", REF_PREFIX)
        taken = {*self._reader.list_names()}
        for number in count(1):
            name = str(number)
            beginnings = (f"refs/heads/{tree_name(name, 0)[:-1]}", f"{REF_PREFIX}{name}/")
            is_free = name not in taken and not self._store.journal.is_claimed(claim_key(name))
            if is_free and not any(each.startswith(beginnings) for each in refs):
                return name
        raise AssertionError

    def begin(
        self,
        call: CallContext,
        plan: RacePlan,
        here: str,
        *,
        listeners: Listeners = SILENT,
        on_added: Callable[[AddedTree], object] = lambda added: None,
    ) -> tuple[Race, list[OwnTree]]:
        """Add a tree for each agent of ``plan``, all at the same commit. Return the race, and the trees.

        - ``here``: a folder of the repository. The race begins at the HEAD of its tree.
        - ``listeners``: called while a tree is added.
        - ``on_added``: called with each added tree.

        If a tree cannot be added, its setup command fails, or the journal refuses the race, the trees that
        were already added are removed again. Raise `InvalidRace`, and the errors of `OwnTrees.add`.
        """
        if not _NAME.fullmatch(plan.name):
            raise InvalidRace(name=plan.name, rule="race_name")
        if plan.name in self._reader.list_names():
            raise InvalidRace(name=plan.name, rule="race_taken")
        if _list_refs(here, f"{REF_PREFIX}{plan.name}/"):
            # Refs outlive the journal, and only they have the work that was not picked.
            raise InvalidRace(name=plan.name, rule="race_kept")
        start = self._trees.find_commit(here, plan.start)
        if not start:
            raise InvalidRace(name=plan.name, rule="tree_start")
        trees: list[OwnTree] = []
        with ExitStack() as undo:
            for number in range(1, len(plan.clients) + 1):
                name = tree_name(plan.name, number)
                added = self._trees.add(call, name, here, start, listeners=listeners)
                undo.callback(self._take_back, call, added.tree, start)
                on_added(added)
                if added.setup is not None and added.setup.status:
                    raise InvalidRace(name=plan.name, rule="race_setup")
                trees.append(added.tree)
            self._store.commits.commit_all([*self._draft_entries(call, plan, start, trees)])
            undo.pop_all()
        return self.find(plan.name), trees

    def _draft_entries(
        self, call: CallContext, plan: RacePlan, start: str, trees: Sequence[OwnTree]
    ) -> Iterator[Note]:
        """Yield the notes that the agents take part in the race, one for each of ``trees``."""
        prompt = escape_unstorable(plan.prompt, MAX_PROMPT)
        for number, (tree, client) in enumerate(zip(trees, plan.clients, strict=True), 1):
            entrant = Entrant(
                *(plan.name, number, client, tree.name, tree.folder, tree.branch),
                *(start, plan.timeout, plan.check),
            )
            subject = extract_first_line(prompt, _MAX_SUBJECT)
            yield call.with_tool(BEGIN_RACE).note(
                TREE, tree.id, message=subject, content=prompt, detail=entrant.detail
            )

    def _take_back(self, call: CallContext, tree: OwnTree, start: str) -> None:
        """Remove a tree in which no agent has worked, and its branch."""
        try:
            self._trees.remove(call, self._trees.plan_removal(tree.id))
        except TreeKept:
            # Its setup command made files that only it has. It stays, and people see it in the list.
            return
        run_git(
            ("update-ref", "-d", f"refs/heads/{tree.branch}", start),
            folder=self._trees.common,
            variables={"GIT_DIR": self._trees.common},
            accepted=None,
        )

    def measure(self, entry: RaceEntry) -> ChangeCounts | None:
        """Count the changes that are in the entry's tree now. Return None if the tree is gone. Raise
        `GitError`, OSError."""
        git = self._find_git(entry)
        return None if git is None else measure(git, entry.entrant.start)

    def finish(
        self, call: CallContext, entry: RaceEntry, state: FinishState, status: int, seconds: float
    ) -> EntryEnd:
        """Record that the client of ``entry`` has ended, and store all files of its tree. Raise
        `JournalError`."""
        finish = EntryEnd(state, status, seconds)
        git = self._find_git(entry)
        for _ in range(_TRIES):
            if git is None:
                break
            try:
                commit, changes = self._store_content(entry, git)
                finish = finish._replace(changes=changes, commit=commit)
                break
            except (GitError, OSError):
                # A program that it has left running changes files.
                continue
        self._note(call.with_tool(END_RACE), entry.tree, f"{entry.entrant.name}: {state}", finish.detail)
        return finish

    def check(self, call: CallContext, entry: RaceEntry, *, cache: str = "") -> TrialOutcome | None:
        """Run the race's check on the files that the agent left, and record the result.

        It runs like the check of a landing, see `watchroom.features.trees.landing.Landings.land`. None if
        there is no check, or nothing to check. Raise `GitError`, `JournalError`, OSError.
        """
        git, entrant = self._find_git(entry), entry.entrant
        if git is None or not entrant.check or entry.finish is None or not entry.finish.commit:
            return None
        outcome = run_trial(
            git,
            f"{entry.finish.commit}^{{tree}}",
            ("/bin/sh", "-c", entrant.check),
            claim=lambda slot: self._store.journal.claim(f"trial:{entry.tree}:{slot}"),
            linked=LINKED,
            timeout=entrant.timeout,
            cache=cache,
        )
        check = RaceCheck(outcome.status, outcome.seconds)
        self._note(call.with_tool(CHECK_RACE), entry.tree, entrant.check, check.detail)
        return outcome

    # -- the pick

    def pick(self, call: CallContext, name: str, number: int) -> RaceEntry:
        """Record that a person picks the work of an agent. Nothing happens if it is picked already. Raise
        `UnknownRace`, `InvalidRace`."""
        with self.claim(name) as is_mine:
            if not is_mine:
                raise InvalidRace(name=name, rule="race_running")
            race = self.find(name)
            entry, picked = race.find(number), race.picked
            if entry is None:
                raise InvalidRace(name=name, rule="race_number")
            if picked is not None and picked != entry:
                raise InvalidRace(name=name, rule="race_picked")
            if picked is None:
                if self._find_git(entry) is None:
                    raise InvalidRace(name=name, rule="race_gone")
                self._note(call.with_tool(PICK_RACE), entry.tree, entry.entrant.name, {})
            return entry

    def put_away(
        self, call: CallContext, entry: RaceEntry, agents: Sequence[tuple[str, str]] = ()
    ) -> PutAway | None:
        """Keep all files of the entry's tree in a ref, then remove the tree. None if it was removed before.

        ``agents``: see `OwnTrees.plan_removal`.

        Raise `GitError`, `JournalError`, OSError.
        """
        git = self._find_git(entry)
        if git is None:
            return None
        plan = self._trees.plan_removal(entry.tree, agents)
        commit, _ = self._store_content(entry, git)
        kept = Kept(entry.entrant.ref, commit)
        run_git(
            ("update-ref", "-m", "watchroom race", kept.ref, commit),
            folder=git.folder,
            variables={"GIT_DIR": git.git},
        )
        self._note(call.with_tool(KEEP_RACE), entry.tree, kept.ref, kept.detail)
        if not list_hidden(git):
            plan = plan._replace(obstacles=tuple(filter(_is_in_the_way, plan.obstacles)))
        try:
            self._trees.remove(call, plan)
        except TreeKept as error:
            return PutAway(kept, plan, error)
        return PutAway(kept, plan)

    def _store_content(self, entry: RaceEntry, git: GitTree) -> tuple[str, ChangeCounts]:
        """Commit all files of a tree on top of its HEAD. Return the id of the commit, and the changes since
        the race began."""
        entrant = entry.entrant
        message = f"Race {entrant.race}, agent {entrant.number}"
        commit = commit_content(git, write_content(git), message)
        return commit, compare(git, entrant.start, commit)

    def _find_git(self, entry: RaceEntry) -> GitTree | None:
        """Return the entry's tree, None if it is gone."""
        found = self._trees.find(entry.tree)
        return GitTree.find(found.folder) if found is not None else None

    def _note(self, call: CallContext, tree: str, message: str, detail: dict[str, Json]) -> None:
        subject = extract_first_line(message, _MAX_SUBJECT)
        self._store.commits.commit(call.note(TREE, tree, message=subject, detail=detail))


def _list_refs(here: str, *prefixes: str) -> list[str]:
    """Return the refs that begin with ``prefixes``, in the repository with the folder ``here``. Raise
    `GitError`."""
    words = ("for-each-ref", "--format=%(refname)", *prefixes)
    return run_git(words, folder=here).output.decode("utf-8", "surrogateescape").split("\n")[:-1]


def _is_in_the_way(obstacle: Obstacle) -> bool:
    return obstacle.kind not in _IN_REF
