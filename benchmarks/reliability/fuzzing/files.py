"""Files that people write: ``config.toml``, ``settings.toml`` and scenarios. Also names and paths."""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, Self

import tomli_w
from watchroom import validation
from watchroom.agents.simulation.scenario_file import BUILT_IN, load
from watchroom.errors import WatchroomError
from watchroom.features.config.rows import dump_config, parse_config, sort_top_down
from watchroom.model import Json
from watchroom.texts import catalogue
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.settings import read_settings, remember

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import HOSTILE, mutated, mutated_json, some_text
from reliability.fuzzing.oracle import refusal_kind, require

_DOCS: Final = Path(__file__).parents[3] / "docs"
_TOML_TOKENS: Final = (
    *(b"[", b"]", b"[[", b"]]", b"{", b"}", b"=", b".", b"#", b'"', b"'", b'"""', b"'''", b"\n", b"\\u0000"),
    *(b"\\ud800", b"1979-05-27T07:32:00Z", b"07:32:00", b"1e999", b"nan", b"inf", b"-inf", b"0b1"),
    b"9" * 5000,
    *(b"true", b"a.b.c = 1\n", b"[x]\n", b"{a = {b = 1}}", b"[[[[[]]]]]", b"\xff", b"\xef\xbb\xbf", b"-1"),
    b"0",
)


_VALUES: Final[Sequence[Json]] = (
    0,
    -1,
    2**63,
    1.5,
    float("nan"),
    float("inf"),
    True,
    "",
    "x",
    [],
    {},
    [[1]],
    [{}],
)


def _examples(*pages: str) -> Iterator[bytes]:
    """Yield the TOML files in the documentation."""
    for page in pages:
        for found in re.finditer(r"```toml\n(.*?)```", (_DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
            yield found[1].encode()


class _TomlFile:
    """A TOML file: mutations of valid ones, with its keywords."""

    name: str
    size = 200_000
    period = 1_000_000_000
    slow_seconds = SLOW_SECONDS
    seeds: Sequence[bytes]
    words: Sequence[bytes]
    leaves: Sequence[Json] = ()

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{self.name}.toml"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._path.unlink(missing_ok=True)

    def generate(self, chance: Random) -> bytes:
        return self.mutate(chance.choice(self.seeds), chance.choice(self.seeds), chance)

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        if chance.random() < 0.4:
            with suppress(ValueError, TypeError, RecursionError):
                table = mutated_json(tomllib.loads(data.decode()), chance, (*_VALUES, *self.leaves))
                return tomli_w.dumps(table).encode()[: self.size] if isinstance(table, dict) else data
        return mutated(data, chance, self.size, (*_TOML_TOKENS, *self.words, *self.words), other)

    def check(self) -> Sequence[str]:
        return ()


_TEAM: Final = b"""language = "zh"
unfenced_commands = "ask"
allowed_hosts = ["pypi.org", "*.example.org"]
max_task_files = 1000
[agents.alice]
role = "lead"
layer = "top"
[agents.bob]
layer = "mid"
supervisor = "alice"
role = "Back end"
[agents.carol]
supervisor = "bob"
task = "t1"
"""


class ConfigFiles(_TomlFile):
    """Parses ``config.toml``, writes it and parses it again."""

    name = "config"
    seeds = (*_examples("policy.md", "limits.md", "needs.md"), _TEAM, b"")
    words = tuple(
        each.encode()
        for each in (
            *("language", '"en"', "agents", "alice", "bob", "role", "layer", '"mid"', "supervisor", "task"),
            *("policy", '"allow"', '"deny"', "path", "[[policy.rules]]", "tool", '"rm *"', '"*"'),
            *('"**/.env"', "agent"),
            *("time_zone", '"UTC"', '"../x"', '"mon-fri"', '"09:00-18:00"', "verdict", "mode", '"test"'),
            "name",
            *("budgets", "team", "session", "sessions", "tokens", "cost", "seconds", "steps"),
            *("agents.alice", "kinds"),
            *("alerts", "targets", "url", "command", "breaker", "failures", "edits", "quiet", "hours"),
            "days",
            *(f"\n[agents.a{n}]\nsupervisor = 'a{n - 1}'\n" for n in range(1, 6)),
        )
    )

    def generate(self, chance: Random) -> bytes:
        if chance.random() > 0.02:
            return super().generate(chance)
        # A chain of supervisors, which can be long.
        agents = (f"[agents.a{n}]\nsupervisor = 'a{n - 1}'\n" for n in range(1, chance.choice((3, 40, 3000))))
        return f"[agents.a0]\n{''.join(agents)}".encode()

    def run(self, data: bytes) -> Hashable:
        try:
            config = parse_config(data.decode("utf-8", "replace"))
        except WatchroomError as error:
            said = error.message()
            return *refusal_kind(error), re.sub(r"[^a-z_. ]+", "", said)[:60]
        require(len(sort_top_down(config.agents)) == len(config.agents), "agents that are beneath nobody")
        written = dump_config(config)
        require(parse_config(written) == config, "another config when it is read again")
        return tuple(
            getattr(config, name) == getattr(parse_config(""), name)
            for name in ("policy", "budgets", "alerts", "breaker", "allowed_hosts", "language")
        )


class SettingsFiles(_TomlFile):
    """Reads ``settings.toml``, changes it and reads it again."""

    name = "settings"
    size = 70_000
    seeds = (*_examples("settings.md"), b'publish = "x"\n[keys]\n"help" = ["f1", "Q"]\n', b"")
    words = tuple(
        each.encode()
        for each in (
            *("theme", '"light"', "language", '"zh"', "alerts", "screen", "filters", "keys", "publish"),
            "git",
            *("webhook", "branch", "folder", '"ctrl+x"', '"a"', '["a", "b"]', "[]", '"shift+tab"', '"!"'),
            "help",
        )
    )

    def run(self, data: bytes) -> Hashable:
        self._path.write_bytes(data)
        try:
            settings = read_settings(self._path, catalogue("en", "watchroom_tui.texts"))
        except WrongUsage as error:
            said = str(error)
            said.encode()
            return re.sub(r"[^a-z ]+", "", said.partition(".toml")[2])[:40]
        require(all(settings.keymap.values()), "an action without a key")
        str(settings.publication)
        try:
            remember(self._path, theme="light")
        except ValueError:
            return "not remembered"
        again = read_settings(self._path, catalogue("zh", "watchroom_tui.texts"))
        require(
            again.theme == "light" and again.keys == settings.keys, "what was remembered is not what is read"
        )
        return tuple(
            bool(getattr(settings, name))
            for name in ("theme", "publish", "screen", "filters", "keys", "alerts")
        )


class ScenarioFiles(_TomlFile):
    """Loads a scenario."""

    name = "scenarios"
    seeds = (*_examples("scenarios.md"), (BUILT_IN / "rogue_agent.toml").read_bytes()[:6000])
    words = tuple(
        each.encode()
        for each in (
            *("agent", "routine", "steps", "call", "args", "wait", "say", "as", "chance", "repeat", "[1, 3]"),
            *("first", "text", "number", '"${number.1.9}"', '"${team}"', "${x|match:(a+)+$}", "|cut:"),
            "|first",
            *("each", "every", "on_error", "stop", '"collab_write"', '"${"', "}}", "$", "name", "layer"),
            "role",
        )
    )

    def run(self, data: bytes) -> Hashable:
        self._path.write_bytes(data)
        try:
            scenario = load(self._path)
        except WatchroomError as error:
            said = error.message().partition(".toml")[2]
            return *refusal_kind(error), re.sub(r"[^a-z ]+", "", said)[:40]
        return len(scenario.roster())


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    "agent": validation.check_agent_id,
    "session": validation.check_session_id,
    "document": validation.check_document_id,
    "key": validation.check_map_key,
    "board": validation.check_board_name,
    "human": validation.check_human_name,
    "path": validation.check_path,
    "handoff": validation.check_handoff_name,
}
_NAMES: Final = (
    *("alice", "a_to_b", "human:eve", "outside", "system", "user", "notes.md", "a/b/c.txt", "mid-layer-x"),
    "global",
    *("dana.o@x", "Zoë K", "x" * 64, "x" * 65, "a/" * 31 + "b", "é" * 100, "bottom-layer-", "top-layer"),
    "x.meta.json",
    *("CON", "com1.txt", "COM¹", "a ", " a", "a.", ".a", "a//b", "./a", "a/..", "∕", "․․", "．．", "file:x"),
)
_OPEN: Final = frozenset({"key"})
"""Keys of a map are shown, but never a part of a path."""


class Names:
    """Checks that each name is refused, or safe as a name of its kind."""

    name = "names"
    size = 4_000
    period = 1_000_000_000
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._root = os.path.join(folder, "root")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        return "".join(
            chance.choice((*_NAMES, *HOSTILE)) if chance.random() < 0.7 else some_text(chance)
            for _ in range(chance.choice((1, 1, 1, 2, 3)))
        ).encode()

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        return mutated(
            data, chance, self.size, tuple(each.encode() for each in (*HOSTILE, "/", ".", "\\")), other
        )

    def run(self, data: bytes) -> Hashable:
        # File names on POSIX can be any bytes.
        name = os.fsdecode(data)
        return tuple(self._check(kind, check, name) for kind, check in _CHECKS.items())

    def check(self) -> Sequence[str]:
        return ()

    def _check(self, kind: str, check: Callable[[str], str], name: str) -> Hashable:
        try:
            found = check(name)
        except WatchroomError as error:
            return refusal_kind(error)
        require(found == name, "a name that was changed")
        found.encode()
        if kind not in _OPEN:
            hidden = [
                each for each in found if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
            ]
            require(not hidden, (kind, found))
            meant = os.path.normpath(os.path.join(self._root, found))
            require(meant.startswith(self._root + os.sep), (kind, found))
            require(meant == os.path.join(self._root, found), (kind, found, "means another path"))
            require(len(found.encode()) <= validation.MAX_PATH_BYTES, (kind, "is too long"))
        return kind
