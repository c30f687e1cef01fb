"""The rows of working trees: their zones and tools, and what their details mean.

| zone | path | versions | notes |
|---|---|---|---|
| `TREE` | ``TREE`` | the tree's folder, branch and HEAD, when one changed | commits, tries, landings, … |
| `REPO` | ``TREE/PATH`` | each version of a file, as in a task's folder | readings, refused writes |

Only changes are recorded. The first version of a file is git's text (`BASELINE`), recorded just before the
first change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.kernel.rules.details import get_count, get_float, get_int, get_list, get_object, get_text
from watchroom.kernel.zones import ZONES
from watchroom.model import Json, Row, parse_object
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable

TREE: Final = "tree"
REPO: Final = "repo"
READ: Final = ZONES[REPO].read_tool
"""The tool of the note that an agent read a file. Its ``base`` is the version that it saw."""

RECORD_TREE: Final = "record_tree"
"""The tool of a tree's versions."""
ADD_TREE: Final = "add_tree"
"""The tool of the version that records the addition of a tree. See `Addition`."""
SETUP_TREE: Final = "setup_tree"
"""The tool of the note that the setup command of a tree ended. See `Setup`."""
REMOVE_TREE: Final = "remove_tree"
"""The tool of the version that records the removal of a tree. The version has an empty folder. See
`Removal`."""
COMMIT_AGENT: Final = "commit_agent"
"""The tool of the note that a person committed work of agents. See `read_commit`."""
TRY_AGENT: Final = "try_agent"
"""The tool of the note that a person tried work of agents. See `TryRecord`."""
PREDICT: Final = "predict_conflicts"
"""The tool of the note about two trees whose predicted conflicts have changed. See `Prediction`."""
CHANGE_OTHER_TREE: Final = "change_other_tree"
"""The tool of the note that a command of an agent changed files of another tree than the agent's."""
LAND: Final = "land_tree"
"""The tool of the notes about a landing, and of its conflicts. See `watchroom.features.trees.landing`."""
PULL_REQUEST: Final = "open_pull_request"
"""The tool of the notes about a pull request. See `watchroom.features.trees.pull_requests`."""
SIDE: Final = "side"
INTO: Final = "into"
"""The fields of a row's detail about a landing: the branch of a text, and the branch in which it lands."""
LANDING_PREFIX: Final = "land."
"""The prefix of the tree ids in the paths of landing conflicts. No real tree has such an id."""
BASELINE: Final = "git_baseline"
"""The tool of a file's first version: git's text before anybody changed it. Its actor is ``system``."""
CHANGE: Final = "tree_change"
"""The tool of a version that was found on disk."""
FORMATTER: Final = "formatter"
"""The tool of a version that another program, such as a formatter, made right after an agent's write."""

Grade: TypeAlias = Literal["tool", "window", "shared", "external", "git"]
"""The certainty about the author of a version.

- ``tool``: the agent's own tool wrote it.
- ``window``: the only command that ran was this agent's. Shown as ``~alice``.
- ``shared``: several commands ran. The actor is ``outside``, and `CANDIDATES` names the agents.
- ``external``: no command ran.
- ``git``: git wrote it, for example in a checkout.
"""
GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
GRADE: Final = "grade"
CANDIDATES: Final = "candidates"
CLIENT_CALL_ID: Final = "client_call_id"
"""The fields of a version's detail: its `Grade`, the agents that may have made it, and the client's id for
the call."""


class Tree(NamedTuple):
    """A working tree.

    - ``id``: its id, the first part of the paths of its files.
    - ``folder``: its absolute path; empty if it was removed.
    - ``git``: the absolute path of its own git folder.
    - ``branch``: empty if HEAD is detached.
    - ``head``: the id of the commit, empty if there is none.
    """

    id: str
    folder: str
    git: str
    branch: str = ""
    head: str = ""

    @property
    def content(self) -> dict[str, Json]:
        """The content of the tree's row."""
        return {"folder": self.folder, "git": self.git, "branch": self.branch, "head": self.head}


def read_tree(path: str, content: str) -> Tree:
    """Return the tree of a row with this ``path`` and ``content``. Damaged fields are empty."""
    fields: Mapping[str, Json] = parse_object(content) or {}
    return Tree(path, *(get_text(fields, name) for name in ("folder", "git", "branch", "head")))


class Addition(NamedTuple):
    """The addition of a tree, as recorded in its row.

    - ``name``: its name.
    - ``start``: the id of the commit at which its branch began; empty if the branch existed.
    - ``first_port``, ``ports``: its first port, and their number; 0 for none.
    - ``restored``: the id of the removed tree whose uncommitted files it got; empty for none.
    - ``forked``: the id of the tree whose uncommitted files it got; empty for none.
    """

    name: str
    start: str = ""
    first_port: int = 0
    ports: int = 0
    restored: str = ""
    forked: str = ""

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {**self._asdict()}


def read_addition(row: Row) -> Addition:
    """Return the record of ``row``, a version with the tool `ADD_TREE`."""
    detail = row.detail
    return Addition(
        get_text(detail, "name"),
        get_text(detail, "start"),
        get_count(detail, "first_port"),
        get_count(detail, "ports"),
        get_text(detail, "restored"),
        get_text(detail, "forked"),
    )


class Setup(NamedTuple):
    """The result of the setup command of a tree.

    - ``command``: the command of the shell.
    - ``status``: its exit code, or the negative number of the signal that ended it.
    - ``seconds``: how long it ran.
    """

    command: str
    status: int
    seconds: float

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {**self._asdict(), "seconds": round(self.seconds, 3)}


def read_setup(row: Row) -> Setup:
    """Return the record of ``row``, a note with the tool `SETUP_TREE`."""
    detail = row.detail
    return Setup(get_text(detail, "command"), get_int(detail, "status") or 0, get_float(detail, "seconds"))


class Removal(NamedTuple):
    """The removal of a tree.

    - ``name``: its name.
    - ``folder``: its former folder.
    - ``uncommitted``: the number of its files whose newest version is in the journal only.
    - ``forced``: the kinds of the obstacles that were overridden.
    - ``kept``: the branch that was made for its commits; empty for none.
    """

    name: str
    folder: str
    uncommitted: int = 0
    forced: tuple[str, ...] = ()
    kept: str = ""

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {**self._asdict(), "forced": [*self.forced]}


def read_removal(row: Row) -> Removal:
    """Return the record of ``row``, a version with the tool `REMOVE_TREE`."""
    detail = row.detail
    return Removal(
        get_text(detail, "name"),
        get_text(detail, "folder"),
        get_count(detail, "uncommitted"),
        _get_texts(detail, "forced"),
        get_text(detail, "kept"),
    )


def _get_texts(fields: Mapping[str, Json], name: str) -> tuple[str, ...]:
    return tuple(each for each in get_list(fields, name) if isinstance(each, str))


class CommitRecord(NamedTuple):
    """A commit of agents' work, as recorded in its note.

    - ``tree``, ``branch``: where it was made.
    - ``commit``, ``parent``: the ids of the commit and its parent.
    - ``took``: by path in the tree, the versions that are in the commit, but not in its parent.
    """

    tree: str
    branch: str
    commit: str
    parent: str
    took: Mapping[str, tuple[int, ...]]

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        took: dict[str, Json] = {path: [*versions] for path, versions in self.took.items()}
        return {"branch": self.branch, "commit": self.commit, "parent": self.parent, "took": took}


def read_commit(row: Row) -> CommitRecord:
    """Return the record of ``row``, a note with the tool `COMMIT_AGENT`."""
    detail = row.detail
    took = {
        path: tuple(each for each in versions if isinstance(each, int))
        for path, versions in get_object(detail, "took").items()
        if isinstance(versions, list)
    }
    return CommitRecord(
        row.path, get_text(detail, "branch"), get_text(detail, "commit"), get_text(detail, "parent"), took
    )


class TryRecord(NamedTuple):
    """The result of a command in a copy of a tree, as recorded in its note.

    - ``agents``: the agents whose work was in the copy.
    - ``command``: the program with its arguments.
    - ``status``: its exit code; None after the timeout.
    - ``seconds``: its run time.
    """

    agents: tuple[str, ...]
    command: tuple[str, ...]
    status: int | None
    seconds: float

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {
            "agents": [*self.agents],
            "command": [*self.command],
            "status": self.status,
            "seconds": round(self.seconds, 3),
        }


def read_try(row: Row) -> TryRecord:
    """Return the record of ``row``, a note with the tool `TRY_AGENT`."""
    detail = row.detail
    agents, command = (_get_texts(detail, name) for name in ("agents", "command"))
    status = detail.get("status")
    return TryRecord(
        agents, command, status if isinstance(status, int) else None, get_float(detail, "seconds")
    )


class Prediction(NamedTuple):
    """The files of two trees that would conflict in a merge, as recorded in their note.

    - ``trees``: the ids of the trees, in alphabetical order.
    - ``paths``: the files, in alphabetical order; none if the trees can be merged.
    - ``names``: the branches of the trees, or their commits if HEAD is detached.
    """

    trees: tuple[str, str]
    paths: tuple[str, ...]
    names: tuple[str, str] = ("", "")

    @property
    def detail(self) -> dict[str, Json]:
        """The prediction as the detail of a row."""
        return {
            "with": self.trees[1],
            "paths": [escape_unstorable(each, MAX_PATH_BYTES) for each in self.paths],
            "names": [escape_unstorable(each) for each in self.names],
        }


def read_prediction(row: Row) -> Prediction:
    """Return the prediction of ``row``, a note with the tool `PREDICT`."""
    names = (*_get_texts(row.detail, "names"), "", "")
    paths = _get_texts(row.detail, "paths")
    return Prediction((row.path, get_text(row.detail, "with")), paths, (names[0], names[1]))


def repo_path(tree: str, path: str) -> str:
    """Return the path of the rows of the file at ``path`` in ``tree``."""
    return f"{tree}/{path}"


def split_repo_path(path: str) -> tuple[str, str]:
    """Return the tree's id and the file's path in the tree."""
    tree, _, name = path.partition("/")
    return tree, name


def side_of(row: Row) -> str:
    """Return the branch of a text in the conflict of a landing; empty for other rows."""
    return get_text(row.detail, SIDE) if row.zone == REPO and is_landing_path(row.path) else ""


def is_landing_path(path: str) -> bool:
    """Return whether ``path``, in the zone `REPO`, belongs to the conflict of a landing and not to a file."""
    return path.startswith(LANDING_PREFIX)


def grade_of(row: Row) -> Grade:
    """Return the grade of ``row``, default ``external``."""
    given = row.detail.get(GRADE)
    return given if given in GRADES else "external"


def candidates_of(row: Row) -> tuple[str, ...]:
    """Return the agents that may have made ``row``, empty if the row does not name any."""
    given = row.detail.get(CANDIDATES)
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
