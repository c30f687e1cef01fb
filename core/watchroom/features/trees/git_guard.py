"""Finds git commands that would discard or commit the work of others in the same working tree. Pure.

`find_refused` checks an agent's command while others work in the same tree. `is_read_only` finds commands
that cannot change files.

The guard prevents accidents, and can be evaded. It does not detect aliases, scripts in files, other programs
that run git, or text after the first 200,000 characters. Unknown text, such as ``git $x``, is not refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename, join, normpath
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.globs import GLOB, MARKS
from watchroom.features.policy.plain_command import INNER_SPACE, read_plain_command
from watchroom.features.policy.shell_reader import FoundCommand, enter_folder, find_commands
from watchroom.texts import Catalogue

GuardRule: TypeAlias = Literal[
    "branch", "discard", "history", "stage_all", "commit_all", "commit_staged", "unstage"
]
"""The reason why a command is refused.

- ``branch``: it checks out files of another branch or commit in the tree.
- ``discard``: it discards uncommitted changes of files.
- ``history``: it moves the branch, and changes files.
- ``stage_all``, ``commit_all``: it also takes changes of others.
- ``commit_staged``: the index has changes of others.
- ``unstage``: it removes changes of others from the index.
"""
MAX_SHOWN: Final = 100
"""Maximum number of characters shown of a refused command."""
MAX_SHOWN_PATHS: Final = 5
_WAYS_OUT: Final[Mapping[GuardRule, tuple[str, ...]]] = {
    "branch": ("worktree",),
    "discard": ("undo_edit",),
    "history": ("worktree",),
    "stage_all": ("add_paths",),
    "commit_all": ("add_paths", "commit_agent"),
    "commit_staged": ("commit_agent",),
    "unstage": ("restore_own",),
}
_MARKED: Final = re.compile(f"[{''.join(sorted(MARKS))}]+")
_EVERYTHING: Final = re.compile(rf"[./*:]+|[./]*{GLOB}|:\(top\)[./]*")
"""Matches paths that name all files of a folder, or of its parents."""
_MAGIC: Final = re.compile(rf"[*?\[:{''.join(sorted(MARKS))}]")
"""Matches characters that let a path name several files."""


class RefusedGit(NamedTuple):
    """A git command that is refused.

    - ``command``: as shown, at most `MAX_SHOWN` characters.
    - ``folder``: where git runs, relative to the folder of the whole command or absolute; None if unknown.
      The command matters only if the folder is in the tree of the agents. An unknown or missing folder must
      count as in the tree, because ``cd`` could fail.
    - ``paths``: the staged paths of others, for ``commit_staged``.
    """

    rule: GuardRule
    command: str
    folder: str | None = "."
    paths: tuple[str, ...] = ()

    def say(self, texts: Catalogue, agent: str, others: Sequence[str] = ()) -> str:
        """Return the text for ``agent``: the reason, and an alternative.

        - ``texts``: the core's catalogue.
        - ``others``: the agents that work in the same tree.
        """
        names = texts("tree.separator").join(others) or texts("guard.others")
        paths = texts("tree.separator").join(self.paths[:MAX_SHOWN_PATHS])
        if len(self.paths) > MAX_SHOWN_PATHS:
            paths = texts("guard.more_paths", paths=paths, count=len(self.paths) - MAX_SHOWN_PATHS)
        reason = texts(f"guard.{self.rule}", command=self.command, others=names, paths=paths)
        return "\n".join((reason, *(texts(f"guard.{way}", agent=agent) for way in _WAYS_OUT[self.rule])))


class _Index(NamedTuple):
    """The known state of the index.

    - ``staged_by_others``: its paths with changes of others.
    - ``is_own``: returns whether a path, relative to the folder of the whole command, has only own changes.
    """

    staged_by_others: tuple[str, ...]
    is_own: Callable[[str], bool]


def find_refused(
    command: str,
    staged_by_others: Sequence[str] = (),
    is_own: Callable[[str], bool] = lambda path: False,
) -> tuple[RefusedGit, ...]:
    """Return the git commands in ``command`` that are refused while others work in the same tree.

    - ``staged_by_others``: the paths in the index with changes of others.
    - ``is_own``: returns whether only the agent itself changed a path. The path is relative to the folder of
      the command, or absolute.
    """
    if "git" not in command:
        return ()
    index = _Index(tuple(staged_by_others), is_own)
    found = [_check(each, index) for each in find_commands(command)]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _check(found: FoundCommand, index: _Index) -> RefusedGit | None:
    if basename(found.words[0].removeprefix("=")) != "git":
        return None
    git = _read_git(found)
    check = _CHECKS.get(git.name)
    if check is None or any(word in ("-h", "--help") for word in git.arguments[:1]):
        return None
    rule = check(git, index)
    if rule is None:
        return None
    shown = _MARKED.sub("…", " ".join(("git", *found.words[1:])))
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
    return RefusedGit(rule, shown, git.folder, index.staged_by_others if rule == "commit_staged" else ())


class _Git(NamedTuple):
    """A git command: its subcommand, the words after it, and the folder in which it runs."""

    name: str
    arguments: tuple[str, ...]
    folder: str | None

    def has_flag(self, letter: str, name: str, values: str = "") -> bool:
        """Return whether an option is given: as ``letter``, as the long ``name``, or as a prefix of ``name``.

        ``values``: the letters of the options that take a value. The value ends a group of short options.
        """
        return any(_is_flag(word, letter, name, values) for word in self.options)

    @property
    def options(self) -> tuple[str, ...]:
        """The words before ``--`` that are options."""
        end = self.arguments.index("--") if "--" in self.arguments else len(self.arguments)
        return tuple(word for word in self.arguments[:end] if word.startswith("-") and word != "-")

    def list_operands(self, values: str = "", names: Sequence[str] = ()) -> list[str]:
        """Return the words that are neither options nor the values of the options ``values`` and
        ``names``."""
        found: list[str] = []
        words = iter(self.arguments)
        for word in words:
            if word == "--":
                return [*found, *words]
            if not word.startswith("-") or word == "-":
                found.append(word)
            elif word in names or _takes_next(word, values):
                next(words, None)
        return found


def _is_flag(word: str, letter: str, name: str, values: str) -> bool:
    if word.startswith("--"):
        return len(word) > 3 and name.startswith(word)
    for each in word[1:]:
        if each == letter:
            return True
        if each in values:
            return False
    return False


def _takes_next(word: str, values: str) -> bool:
    """Return whether the last option in a group of short options takes the next word as its value."""
    if word.startswith("--"):
        return False
    place = next((index for index, each in enumerate(word[1:], 1) if each in values), 0)
    return place == len(word) - 1 > 0


_GLOBAL_VALUES: Final = frozenset(
    ["-c", "--git-dir", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source"]
)
"""Options before the subcommand that take the next word as their value, except options that name the
folder."""


def _read_git(found: FoundCommand) -> _Git:
    folder = found.folder
    words = iter(found.words[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            return _Git(word, tuple(words), folder)
        if word in ("-C", "--work-tree"):
            folder = enter_folder(folder, next(words, ""))
        elif name == "--work-tree" and equals:
            folder = enter_folder(folder, value)
        elif word in _GLOBAL_VALUES:
            next(words, None)
    return _Git("", (), folder)


def _names_own(git: _Git, index: _Index, paths: Sequence[str]) -> bool:
    """Return whether there are ``paths``, and all of them have only changes of the agent itself."""
    if not paths or git.folder is None or any(_MAGIC.search(path) for path in paths):
        return False
    return all(index.is_own(normpath(join(git.folder, path))) for path in paths)


def _names_all(paths: Sequence[str]) -> bool:
    """Return whether ``paths`` name all files of a folder."""
    excluding = [path for path in paths if path.startswith((":!", ":^", ":(exclude"))]
    return any(_EVERYTHING.fullmatch(path) for path in paths) or bool(paths and len(excluding) == len(paths))


def _check_checkout(git: _Git, index: _Index) -> GuardRule | None:
    is_of_paths = "--" in git.arguments or git.has_flag("p", "--patch", "bB")
    return "discard" if is_of_paths or _names_all(git.list_operands("bB")) else "branch"


def _check_restore(git: _Git, index: _Index) -> GuardRule | None:
    if not git.has_flag("S", "--staged", "s") or git.has_flag("W", "--worktree", "s"):
        return "discard"
    paths = git.list_operands("s", ("--source", "--pathspec-from-file"))
    return None if not index.staged_by_others or _names_own(git, index, paths) else "unstage"


def _check_reset(git: _Git, index: _Index) -> GuardRule | None:
    if "--" in git.arguments:
        at = git.arguments.index("--")
        if not git.options or all(word in ("-q", "--quiet") for word in git.options):
            is_own = not index.staged_by_others or _names_own(git, index, git.arguments[at + 1 :])
            return None if is_own else "unstage"
        return "history"
    if git.has_flag("", "--hard") or git.has_flag("", "--merge") or git.has_flag("", "--keep"):
        return "discard"
    if all(word in ("HEAD", "-q", "--quiet") for word in git.arguments):
        return "unstage" if index.staged_by_others else None
    return "history"


def _check_stash(git: _Git, index: _Index) -> GuardRule | None:
    return None if git.arguments[:1] in (("list",), ("show",)) else "discard"


def _check_clean(git: _Git, index: _Index) -> GuardRule | None:
    return None if git.has_flag("n", "--dry-run", "e") else "discard"


def _check_add(git: _Git, index: _Index) -> GuardRule | None:
    if git.has_flag("n", "--dry-run"):
        return None
    paths = git.list_operands("", ("--chmod", "--pathspec-from-file"))
    if _names_all(paths):
        return "stage_all"
    takes_all = (
        git.has_flag("A", "--all") or git.has_flag("u", "--update") or git.has_flag("", "--no-ignore-removal")
    )
    return "stage_all" if takes_all and not paths else None


_COMMIT_VALUES: Final = "mFCctSu"
_COMMIT_NEXT: Final = "mFCct"
_COMMIT_NAMES: Final = (
    "--message",
    "--file",
    "--reuse-message",
    "--reedit-message",
    "--fixup",
    "--squash",
    "--author",
    "--date",
    "--template",
    "--cleanup",
    "--trailer",
    "--pathspec-from-file",
)


def _check_commit(git: _Git, index: _Index) -> GuardRule | None:
    if git.has_flag("", "--dry-run"):
        return None
    if git.has_flag("a", "--all", _COMMIT_VALUES):
        return "commit_all"
    paths = git.list_operands(_COMMIT_NEXT, _COMMIT_NAMES)
    if _names_all(paths):
        return "commit_all"
    # With paths, git does not commit other staged files.
    takes_index = not paths or git.has_flag("i", "--include", _COMMIT_VALUES)
    return "commit_staged" if takes_index and index.staged_by_others else None


def _check_unless(rule: GuardRule, *allowed: str) -> Callable[[_Git, _Index], GuardRule | None]:
    """Return a check that refuses all arguments except those that begin with one of ``allowed``."""
    return lambda git, _: None if git.arguments[:1] and git.arguments[0] in allowed else rule


_CHECKS: Final[Mapping[str, Callable[[_Git, _Index], GuardRule | None]]] = {
    "add": _check_add,
    "stage": _check_add,
    "am": _check_unless("history", "--show-current-patch"),
    "bisect": _check_unless("branch", "log", "view", "visualize", "terms"),
    "checkout": _check_checkout,
    "checkout-index": _check_unless("discard"),
    "cherry-pick": _check_unless("history"),
    "clean": _check_clean,
    "commit": _check_commit,
    "filter-branch": _check_unless("history"),
    "merge": _check_unless("history"),
    "pull": _check_unless("history"),
    "read-tree": _check_unless("branch"),
    "rebase": _check_unless("history", "--show-current-patch"),
    "reset": _check_reset,
    "restore": _check_restore,
    "revert": _check_unless("history"),
    "sparse-checkout": _check_unless("branch", "list"),
    "stash": _check_stash,
    "switch": _check_unless("branch"),
}


# Commands that change no file.


def is_read_only(command: str) -> bool:
    """Return whether ``command`` certainly changes no file, so that no files need to be compared after it.

    Return False for commands that are not fully understood, such as expansions and unknown programs.
    """
    plain = read_plain_command(command)
    return plain.doubt is None and all(_reads_only(each.split(" ")) for each in plain.commands)


def _reads_only(words: list[str]) -> bool:
    # The checks do not depend on spaces in words.
    words = [word.replace(INNER_SPACE, " ") for word in words]
    folder, _, name = words[0].rpartition("/")
    if folder not in ("", "/bin", "/usr/bin"):
        return False
    if name in _READERS:
        return True
    check = _READER_CHECKS.get(name)
    return check is not None and check(words[1:])


_READERS: Final = frozenset(
    [
        "basename",
        "cat",
        "cd",
        "cmp",
        "comm",
        "cut",
        "df",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "expand",
        "false",
        "fgrep",
        "fold",
        "grep",
        "head",
        "hexdump",
        "id",
        "jq",
        "ls",
        "md5sum",
        "nl",
        "nproc",
        "od",
        "paste",
        "pgrep",
        "printenv",
        "ps",
        "pwd",
        "readlink",
        "realpath",
        "rev",
        "seq",
        "sha1sum",
        "sha256sum",
        "sleep",
        "stat",
        "strings",
        "tac",
        "tail",
        "test",
        "tr",
        "true",
        "type",
        "uname",
        "wc",
        "which",
        "whoami",
    ]
)
"""Programs that change no file with any arguments."""
_FIND_ACTIONS: Final = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_SED_SCRIPT: Final = re.compile(
    r"(?:(?:[0-9]+|\$|/[^/\\\n;]*/)(?:,(?:\+?[0-9]+|\$|/[^/\\\n;]*/))?)?p(?:;(?:[0-9]+)(?:,[0-9]+)?p)*"
)
"""Matches ``sed`` scripts that print lines, by number or by pattern."""
_GIT_READERS: Final = frozenset(
    [
        "annotate",
        "blame",
        "cat-file",
        "check-ignore",
        "cherry",
        "count-objects",
        "describe",
        "diff",
        "diff-files",
        "diff-index",
        "diff-tree",
        "for-each-ref",
        "log",
        "ls-files",
        "ls-tree",
        "merge-base",
        "name-rev",
        "range-diff",
        "rev-list",
        "rev-parse",
        "shortlog",
        "show",
        "show-branch",
        "show-ref",
        "status",
        "var",
        "version",
        "whatchanged",
    ]
)
_GIT_LISTS: Final[Mapping[str, frozenset[str]]] = {
    "branch": frozenset(["-a", "-r", "-v", "-vv", "--list", "-l", "--show-current", "--all", "--remotes"]),
    "config": frozenset(["--list", "-l", "--get", "--get-all", "--show-origin", "get", "list"]),
    "reflog": frozenset(["show"]),
    "remote": frozenset(["-v", "show", "get-url"]),
    "stash": frozenset(["list", "show"]),
    "submodule": frozenset(["status"]),
    "tag": frozenset(["-l", "--list"]),
    "worktree": frozenset(["list"]),
}
"""Subcommands that only read if the first argument is one of these.

``branch``, ``remote``, ``reflog`` and ``tag`` also only read without arguments.
"""


def _git_reads_only(arguments: list[str]) -> bool:
    words = iter(arguments)
    for word in words:
        if word == "-C":
            next(words, None)
        elif word not in ("--no-pager", "-P", "--no-optional-locks"):
            rest = [*words]
            # These options write a file or start a program.
            if any(each.startswith(("--ou", "--op", "--ext-diff", "-O")) for each in rest):
                return False
            if word in _GIT_READERS or word in ("--version", "grep"):
                return True
            listing = _GIT_LISTS.get(word)
            if listing is None:
                return False
            return rest[0] in listing if rest else word in ("branch", "reflog", "remote", "tag")
    return False


def _has_no_option(*options: str) -> Callable[[list[str]], bool]:
    """Return a check that no argument begins with one of ``options``."""
    return lambda arguments: not any(word.startswith(options) for word in arguments)


def _sort_reads_only(arguments: list[str]) -> bool:
    return not any(
        word.startswith(("--o", "--comp")) or (word.startswith("-") and word[1:2] != "-" and "o" in word)
        for word in arguments
    )


def _sed_reads_only(arguments: list[str]) -> bool:
    options = list(_take_options(arguments))
    rest = arguments[len(options) :]
    return (
        bool(options)
        and all(word in ("-n", "-E", "-r", "-nE", "-nr") for word in options)
        and any(word.startswith("-n") for word in options)
        and bool(rest)
        and _SED_SCRIPT.fullmatch(rest[0]) is not None
        and not any(word.startswith("-") for word in rest)
    )


def _take_options(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        if not word.startswith("-"):
            return
        yield word


_READER_CHECKS: Final[Mapping[str, Callable[[list[str]], bool]]] = {
    "command": lambda arguments: arguments[:1] in (["-v"], ["-V"]),
    "date": lambda arguments: all(word.startswith("+") or word == "-u" for word in arguments),
    "file": _has_no_option("-C", "--c"),
    "find": _has_no_option(*_FIND_ACTIONS),
    "git": _git_reads_only,
    "hostname": lambda arguments: not arguments,
    "rg": _has_no_option("--pre", "--hostname-bin"),
    "sed": _sed_reads_only,
    "sort": _sort_reads_only,
    "tree": lambda arguments: not any(word.startswith("-") and "o" in word for word in arguments),
    "uniq": lambda arguments: sum(not word.startswith("-") for word in arguments) <= 1,
}
