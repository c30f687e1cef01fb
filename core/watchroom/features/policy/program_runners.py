"""Finds the other programs that a program runs, and the scripts in its arguments. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from typing import Final, NamedTuple

from watchroom.algorithms.globs import ANY, MARKS, ONE, OUTPUT

_MAX_ANYWHERE: Final = 200
"""Maximum number of arguments that are examined as possible starts of a command."""


class Run(NamedTuple):
    """The programs and scripts that a simple command runs.

    - ``programs``: the indexes of its words at which another command may begin.
    - ``others``: other commands, whose words are not the last words of this command.
    - ``scripts``: texts that a shell executes.
    - ``hints``: texts that may be commands, which a shell would execute.
    - ``reads_input``: a shell executes the standard input.
    - ``is_unknown``: a shell executes unknown text.
    """

    programs: tuple[int, ...] = ()
    others: tuple[list[str], ...] = ()
    scripts: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    reads_input: bool = False
    is_unknown: bool = False


_NOTHING: Final = Run()
_SHELLS: Final = frozenset(
    [
        "ash",
        "bash",
        "csh",
        "dash",
        "elvish",
        "fish",
        "ksh",
        "ksh93",
        "lksh",
        "mksh",
        "nu",
        "osh",
        "posh",
        "powershell",
        "pwsh",
        "rbash",
        "sh",
        "tcsh",
        "xonsh",
        "yash",
        "zsh",
    ]
)
_OPERANDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        [
            "-",
            "arch",
            "builtin",
            "busybox",
            "caffeinate",
            "catchsegv",
            "ccache",
            "choom",
            "chronic",
            "command",
            "coproc",
            "corepack",
            "cpulimit",
            "cross-env",
            "daemonize",
            "dbus-run-session",
            "doas",
            "dumb-init",
            "eatmydata",
            "env",
            "env-cmd",
            "exec",
            "fakechroot",
            "fakeroot",
            "firejail",
            "flatpak-spawn",
            "ifne",
            "ionice",
            "linux32",
            "linux64",
            "ltrace",
            "nice",
            "nocorrect",
            "noglob",
            "nohup",
            "nsenter",
            "nsjail",
            "numactl",
            "pkexec",
            "prlimit",
            "proot",
            "proxychains",
            "proxychains4",
            "rlwrap",
            "run0",
            "runuser",
            "sandbox-exec",
            "setpriv",
            "setsid",
            "ssh-agent",
            "sshpass",
            "stdbuf",
            "strace",
            "su",
            "sudo",
            "systemd-cat",
            "systemd-inhibit",
            "systemd-nspawn",
            "systemd-run",
            "time",
            "tini",
            "torify",
            "torsocks",
            "toybox",
            "tsocks",
            "uclampset",
            "unbuffer",
            "unshare",
            "valgrind",
            "winpty",
            "xargs",
            "xvfb-run",
        ],
        0,
    ),
    **dict.fromkeys(
        [
            "chroot",
            "envdir",
            "faketime",
            "flock",
            "gosu",
            "lockf",
            "logsave",
            "mosh",
            "perf",
            "repeat",
            "s6-setuidgid",
            "setlock",
            "setuidgid",
            "sg",
            "su-exec",
            "taskset",
            "timeout",
        ],
        1,
    ),
}
"""For each program, the number of words before the program that it runs. Options and assignments are not
counted."""
_ANYWHERE: Final = frozenset(
    [
        "bun",
        "bundle",
        "bunx",
        "bwrap",
        "chrt",
        "concurrently",
        "conda",
        "direnv",
        "docker",
        "dotenv",
        "entr",
        "fd",
        "fdfind",
        "gdb",
        "hatch",
        "hyperfine",
        "kubectl",
        "lldb",
        "mise",
        "nix",
        "nix-shell",
        "nodemon",
        "npx",
        "parallel",
        "pdm",
        "pipenv",
        "pixi",
        "pnpm",
        "podman",
        "poetry",
        "runcon",
        "rush",
        "rye",
        "screen",
        "script",
        "sem",
        "setarch",
        "tmux",
        "uv",
        "uvx",
        "watchexec",
        "wsl",
        "yarn",
    ]
)
"""Programs that run another command. It can begin at any word of their arguments. A program whose name has
marks is treated like these programs."""
_EXEC: Final = frozenset({"exec"})
_RUN: Final = frozenset({"run"})
_SUBCOMMANDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ["asdf", "cabal", "dune", "fnm", "gem", "nodenv", "nvm", "opam", "pyenv", "rbenv"], _EXEC
    ),
    **dict.fromkeys(["stack", "tox", "lerna", "nx", "aws-vault"], _EXEC),
    **dict.fromkeys(["apptainer", "devcontainer", "incus", "lxc", "oc", "singularity"], _EXEC),
    **dict.fromkeys(["pipx", "mamba", "micromamba", "rustup", "volta", "devbox", "toolbox"], _RUN),
    **dict.fromkeys(["doppler", "dotenvx", "foreman", "honcho", "infisical", "op", "zellij"], _RUN),
    **dict.fromkeys(["docker-compose", "nerdctl", "podman-compose"], _EXEC | _RUN),
    "cargo": frozenset({"watch"}),
    "distrobox": frozenset({"enter"}),
    "guix": frozenset({"shell", "environment"}),
    "ip": frozenset({"netns", "vrf"}),
    "npm": frozenset({"exec", "x", "explore"}),
    "pueue": frozenset({"add"}),
    "rr": frozenset({"record"}),
    "rtx": frozenset({"exec", "x"}),
}
"""The subcommands with which a program runs another command. It can begin at any later word. Other
subcommands run no command of the text: ``npm test -- rm`` gives ``rm`` to the tests."""
_GNU: Final[Mapping[str, str]] = {
    f"g{name}": name
    for name in ("chroot", "env", "find", "nice", "nohup", "stdbuf", "time", "timeout", "xargs")
}
"""The programs of GNU under their names on macOS."""
_OPTION_SCRIPTS: Final = frozenset(["flock", "runuser", "sg", "su"])
"""Programs whose option ``-c`` is a script, at any position."""
_SHELL_RUNNERS: Final = frozenset(
    ("su", "sudo", "run0", "runuser", "doas", "sg", "chroot", "nsenter", "unshare")
)
"""Programs that run a shell by default."""
_CALLBACKS: Final[Mapping[str, str]] = {
    "compgen": "C",
    "complete": "C",
    "mapfile": "C",
    "readarray": "C",
    "entr": "s",
    "nix-shell": "r",
    "npm": "c",
    "npx": "c",
    "script": "c",
}
_GIT_VALUES: Final = frozenset(
    [
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--super-prefix",
        "--config-env",
        "--attr-source",
        "--list-cmds",
    ]
)
_GIT_FILTER: Final = re.compile(r"--(?:tree|index|msg|env|commit|parent|tag-name)-filter")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*=")
_STANDARD_INPUT: Final = re.compile(r"-|/dev/stdin|/dev/fd/[0-9]+|/proc/self/fd/[0-9]+")
_BLANK: Final = re.compile(r"\s")
_FIND_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def find_runs(name: str, words: list[str]) -> Run:
    """Return the scripts and commands that the command ``words`` runs. ``name``: the program's name without
    its folder."""
    name = _GNU.get(name, name)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    if name in _SHELLS:
        return _expand_shell(words)
    if name.startswith("git-"):
        return Run(others=(["git", name.removeprefix("git-"), *words[1:]],))
    if name in _ANYWHERE or not MARKS.isdisjoint(name):
        return _expand_anywhere(name, words)
    if name in _SUBCOMMANDS:
        return _expand_subcommand(name, words)
    if name in _OPERANDS:
        return _expand_runner(name, words)
    callback = _CALLBACKS.get(name)
    return Run(scripts=tuple(_find_option_values(words, callback))) if callback else _NOTHING


def _expand_runner(name: str, words: list[str]) -> Run:
    programs, is_unknown = _find_programs(words, _OPERANDS[name], name)
    scripts: tuple[str, ...] = ()
    if name in _OPTION_SCRIPTS:
        # Options after the program do not belong to flock.
        end = programs[-1] + 1 if name == "flock" and programs else len(words)
        scripts = tuple(_find_option_values(words[:end], "c"))
    reads_input = name in _SHELL_RUNNERS and not scripts and (not programs or name == "su")
    return Run(programs, scripts=scripts, reads_input=reads_input, is_unknown=is_unknown)


class _Options(NamedTuple):
    """The short options of a program: ``flags`` take no value, ``values`` take one."""

    flags: str = ""
    values: str = ""

    def count_values(self, word: str) -> tuple[int, int]:
        """Return the minimum and maximum number of words after the option ``word`` that belong to its
        value."""
        if word == "--" or (word.startswith("--") and "=" in word):
            return 0, 0
        for at, letter in enumerate(word[1:], 1):
            if letter in self.values:
                is_next = at == len(word) - 1
                return int(is_next), int(is_next)
            if letter not in self.flags:
                return 0, 1
        return 0, 0


_OPTIONS: Final[Mapping[str, _Options]] = {
    "command": _Options("pvV"),
    "doas": _Options("Lns", "Cau"),
    "env": _Options("0iv", "uC"),
    "exec": _Options("cl", "a"),
    "nice": _Options("", "n"),
    "setsid": _Options("cfw"),
    "stdbuf": _Options("", "ioe"),
    "sudo": _Options("ABbEeHiKklNnPSsVv", "CDgpRrTtUu"),
    "time": _Options("apv", "fo"),
    "timeout": _Options("fpv", "ks"),
    "xargs": _Options("0oprtx", "adEILnPs"),
}


def _find_programs(words: list[str], operands: int, name: str = "") -> tuple[tuple[int, ...], bool]:
    """Return the indexes at which the program may begin, and whether there are more than `_MAX_ANYWHERE`."""
    indexes = tuple(islice(_find_program_indexes(words, operands, name), _MAX_ANYWHERE + 1))
    return indexes[:_MAX_ANYWHERE], len(indexes) > _MAX_ANYWHERE


def _find_program_indexes(words: list[str], operands: int, name: str) -> Iterator[int]:
    """Yield the indexes at which the program may begin. Unknown options may or may not have a value."""
    options = _OPTIONS.get(name, _Options())
    uncertain = others = skipped = 0
    for index, word in enumerate(words[1:], 1):
        is_unknown = word[:1] in (ANY, ONE)
        if skipped and not is_unknown:
            skipped -= 1
            continue
        if _ASSIGNMENT.match(word):
            continue
        if word.startswith(("-", "+")) and len(word) > 1:
            skipped, most = options.count_values(word)
            uncertain += most - skipped
            continue
        uncertain += is_unknown
        if others >= operands:
            yield index
        others += 1
        if others > uncertain + operands:
            return


def _find_option_values(words: list[str], letter: str) -> Iterator[str]:
    """Yield the possible values of the option ``letter``, or of ``--command``, in ``words``."""
    for index, word in enumerate(words[1:], 1):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in ("--command", "--run", "--session-command", "--split-string", "--call", "--exec"):
                yield value if equals else following
        elif word.startswith("-") and letter in word:
            attached = word[word.index(letter) + 1 :]
            if attached:
                yield attached
            yield next((each for each in words[index + 1 :] if not each.startswith("-")), following)


def _expand_shell(words: list[str]) -> Run:
    """Return the script that a shell runs. The first word that is not an option is the script with
    ``-c``, else the path of a script file."""
    has_script, index = False, 1
    while index < len(words):
        word = words[index]
        if word[:1] == ANY or (word == ONE and index + 1 < len(words)):
            return Run(is_unknown=True)
        if word.lower() == "-command":
            # PowerShell joins the rest.
            return Run(scripts=(" ".join(words[index + 1 :]),))
        if word == "--command" or word.startswith("--command="):
            return Run(scripts=(word.partition("=")[2] or " ".join(words[index + 1 : index + 2]),))
        if not word.startswith(("-", "+")) or word == "-":
            break
        has_script |= "c" in word and not word.startswith("--")
        index += 1
        if word == "--":
            break
        if word in ("--rcfile", "--init-file") or word.lstrip("-+")[-1:] in ("o", "O"):
            index += 1
    if index >= len(words):
        return Run(reads_input=not has_script, is_unknown=has_script)
    if has_script:
        return Run(scripts=(words[index],))
    return _expand_source(words[index - 1 :])


def _expand_source(words: list[str]) -> Run:
    """Return the script that a sourced file contains. It is unknown only if another command writes the
    file."""
    name = words[1] if len(words) > 1 else "-"
    return Run(reads_input=bool(_STANDARD_INPUT.fullmatch(name)) or name == "-s", is_unknown=OUTPUT in name)


def _expand_anywhere(name: str, words: list[str]) -> Run:
    letter = _CALLBACKS.get(name, "")
    scripts = tuple(_find_option_values(words, letter)) if letter else ()
    programs, hints = [], []
    for index, word in enumerate(words[1 : _MAX_ANYWHERE + 1], 1):
        if not word.startswith("-"):
            programs.append(index)
        if _BLANK.search(word):
            hints.append(word)
    is_unknown = len(words) > _MAX_ANYWHERE + 1
    return Run(tuple(programs), scripts=scripts, hints=tuple(hints), is_unknown=is_unknown)


def _expand_subcommand(name: str, words: list[str]) -> Run:
    """Return what a program runs with one of its `_SUBCOMMANDS`. Options before the subcommand may have
    values."""
    for index in _find_programs(words, 0)[0]:
        if words[index] in _SUBCOMMANDS[name] or not MARKS.isdisjoint(words[index]):
            run = _expand_anywhere(name, words[index:])
            return run._replace(programs=tuple(index + each for each in run.programs))
    return _NOTHING


def _expand_env(words: list[str]) -> Run:
    scripts = []
    for index, word in enumerate(words[1:], 1):
        if word.startswith("--split-string"):
            scripts.append(" ".join([word.partition("=")[2], *words[index + 1 :]]))
        elif word.startswith("-") and not word.startswith("--") and "S" in word:
            scripts.append(" ".join([word[word.index("S") + 1 :], *words[index + 1 :]]))
        if len(scripts) > _MAX_ANYWHERE:
            return Run(is_unknown=True)
    programs, is_unknown = _find_programs(words, 0, "env")
    return Run(programs, scripts=tuple(scripts), is_unknown=is_unknown)


def _expand_eval(words: list[str]) -> Run:
    rest = words[2:] if words[1:2] == ["--"] else words[1:]
    return Run(scripts=(" ".join(rest),))


def _expand_trap(words: list[str]) -> Run:
    script = next((each for each in words[1:] if not each.startswith("-")), "")
    return Run(scripts=(script,))


def _expand_alias(words: list[str]) -> Run:
    return Run(scripts=tuple(each.partition("=")[2] for each in words[1:]))


def _expand_command(words: list[str]) -> Run:
    is_query = len(words) > 1 and re.fullmatch("-[pvV]*[vV][pvV]*", words[1])
    return _NOTHING if is_query else _expand_runner("command", words)


def _expand_joined(words: list[str]) -> Run:
    """Return the script of a program that joins its arguments into a script."""
    programs, is_unknown = _find_programs(words, 0)
    return Run(scripts=tuple(" ".join(words[index:]) for index in programs), is_unknown=is_unknown)


def _expand_ssh(words: list[str]) -> Run:
    programs, is_unknown = _find_programs(words, 1)
    scripts = tuple(" ".join(words[index:]) for index in programs)
    return Run(scripts=scripts, reads_input=not scripts, is_unknown=is_unknown)


def _expand_xargs(words: list[str]) -> Run:
    replaced = {"{}"}
    for index, word in enumerate(words):
        if word.startswith("-I"):
            replaced.add(word[2:] or (words[index + 1] if index + 1 < len(words) else "{}"))
    others = []
    programs, is_unknown = _find_programs(words, 0, "xargs")
    for index in programs:
        rest = words[index:]
        for each in replaced:
            rest = [word.replace(each, ONE) for word in rest] if each else rest
        others.append([*rest, ANY])
    return Run(others=tuple(others), is_unknown=is_unknown)


def _expand_find(words: list[str]) -> Run:
    others = []
    starts = list(takewhile(lambda word: not word.startswith(("-", "(", "!")), words[1:])) or ["."]
    # All paths printed by find begin with one of its starting points.
    found = starts[0] + ONE if len(starts) == 1 else ONE
    places = [index for index, word in enumerate(words) if word in _FIND_EXEC]
    for index in places[:_MAX_ANYWHERE]:
        rest = takewhile(lambda word: word != ";", islice(words, index + 1, None))
        others.append([each.replace("{}", found) for each in rest])
    others = [each for each in others if each]
    return Run(others=tuple(others), is_unknown=len(places) > _MAX_ANYWHERE)


def _expand_git(words: list[str]) -> Run:
    """Return the git command without global options, and the commands that its options run."""
    others, scripts, index = [], [], 1
    aliases: list[tuple[str, str]] = []
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        has_value = word in _GIT_VALUES
        if word == "-c" and index + 1 < len(words):
            aliases += _parse_git_alias(words[index + 1])
        index += 2 if has_value else 1
    if 1 < index < len(words):
        others.append([words[0], *words[index:]])
    rest = words[index:]
    for alias, text in aliases:
        scripts.append(text)
        if rest and (rest[0].lower() == alias or not MARKS.isdisjoint(rest[0])):
            others.append([*text.split(), *rest[1:]])
    if rest[:1] in (["submodule"], ["bisect"]) and ("foreach" in rest or "run" in rest):
        at = rest.index("foreach" if "foreach" in rest else "run")
        command = [each for each in rest[at + 1 :] if not each.startswith("--")]
        others += [command] if command else []
        scripts.append(" ".join(command))
    if rest[:1] == ["rebase"]:
        scripts += _find_option_values(rest, "x")
    for at, word in enumerate(rest if rest[:1] == ["filter-branch"] else ()):
        name, equals, value = word.partition("=")
        if _GIT_FILTER.fullmatch(name):
            scripts.append(value if equals else " ".join(rest[at + 1 : at + 2]))
    return Run(others=tuple(others), scripts=tuple(scripts))


def _parse_git_alias(setting: str) -> list[tuple[str, str]]:
    """Return the name of an alias and its command. Other settings whose value begins with an exclamation mark
    are commands, too."""
    key, _, value = setting.partition("=")
    name, is_script = key.lower(), value.startswith("!")
    if not value.lstrip("!").strip() or not (is_script or name.startswith("alias.")):
        return []
    return [(name.removeprefix("alias."), value[1:] if is_script else f"git {value}")]


_SPECIAL: Final[Mapping[str, Callable[[list[str]], Run]]] = {
    ".": _expand_source,
    "alias": _expand_alias,
    "at": lambda _: Run(reads_input=True),
    "batch": lambda _: Run(reads_input=True),
    "command": _expand_command,
    "cross-env-shell": _expand_joined,
    "env": _expand_env,
    "eval": _expand_eval,
    "find": _expand_find,
    "git": _expand_git,
    "source": _expand_source,
    "ssh": _expand_ssh,
    "trap": _expand_trap,
    "watch": _expand_joined,
    "xargs": _expand_xargs,
}
