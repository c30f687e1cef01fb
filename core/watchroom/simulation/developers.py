"""A simulated development team: an architect has programmers write a small program, and tests it.

What they do depends on what they see: a test that fails is mended, what cannot be done is reported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Generator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias, TypeVar

from watchroom.model import SYSTEM, USER, Json
from watchroom.rules.members import Member
from watchroom.runtime import ModelPayload
from watchroom.runtime.models import Reply, SimulatedModel
from watchroom.simulation.following import Follow, Heard, Move, next_move
from watchroom.simulation.passages import lines_changed
from watchroom.texts import Language

PACKAGE: Final = "calculator"
_PHASES: Final = (("tokens", "display"), ("evaluate",))
"""The modules, those together that need none of each other."""
_RAN: Final = re.compile(r"Ran (\d+) test")
_NAMED: Final = re.compile(rf"`({PACKAGE}\w*)`")
_MODULE: Final = re.compile(rf"({PACKAGE}\w*)/(\w+)\.py")
_ASSERTION: Final = re.compile(r"(\w*Error: .*)")
_LONGEST: Final = 200
_CUT_OFF: Final = frozenset({"command_interrupted", "command_stopped"})

_THINKS: Final = 0.6
_WORD_SECONDS: Final = 0.08
_CHARACTER_SECONDS: Final = 0.001
_LONGEST_THOUGHT: Final = 2.0
"""Seconds, at speed 1."""

T = TypeVar("T")
Part: TypeAlias = Generator[Move, Heard, T]


class Lines:
    """What the team says, in one language."""

    def __init__(self, language: Language) -> None:
        self._lines = _texts()[language]

    def __call__(self, key: str, **values: object) -> str:
        return str(self._lines[key]).format(**values)

    def specification(self, module: str, package: str) -> str:
        specifications = self._lines["specification"]
        return str(specifications[module]).format(package=package)  # type: ignore[index]  # as it stands there


def developer(member: Member, language: Language, *, speed: float = 0.0) -> SimulatedModel:
    """The model of an agent of the team: a root, an architect or a programmer; any other role rests.

    ``speed`` divides the time that it thinks and speaks; at 0 it takes none.
    """
    say = Lines(language)

    def follow(opening: str) -> Follow:
        return _SCRIPTS.get(member.role, _idler)(opening, member.parent or USER, say)

    def heeds(text: str) -> Move:
        return _tell(USER, say("heard", text=" ".join(text.split())[:_LONGEST]))

    def decide(payload: ModelPayload) -> Reply:
        move = next_move(follow, payload.messages, heeds) or Move(say("idle"))
        speaks = (move.thought.count(" ") + len(move.thought) / 20) * _WORD_SECONDS
        thinks = _THINKS + len(str(move.arguments)) * _CHARACTER_SECONDS
        return Reply(
            move.thought,
            ((move.tool, move.arguments),) if move.tool else (),
            thinks=min(thinks, _LONGEST_THOUGHT) / speed if speed else 0.0,
            speaks=speaks / speed if speed else 0.0,
        )

    return SimulatedModel(decide)


def _idler(opening: str, parent: str, say: Lines) -> Follow:
    yield Move(say("idle"))


def _root(requirement: str, parent: str, say: Lines) -> Follow:
    """Has an architect do it, tests what it delivers, and ends the task."""
    heard = yield Move(
        say("root_begin"),
        "spawn_agent",
        {"role": "architect", "instructions": requirement, "name": "architect"},
    )
    architect = str(heard.result.get("agent_id", ""))
    report = (yield from _reports(heard, {architect}, say("root_waits")))[architect] if architect else None
    package = _NAMED.search(report or "")
    problem = _problem(heard.result) if not architect else report or architect
    count = 0
    if package is not None:
        heard = yield from _tested(say("root_checks"), f"discover -s {package[1]}/tests -t .")
        count, problem = _outcome(heard.result)
    if package is None or problem:
        said = say("root_broken", problem=problem)
        yield _tell(USER, said)
        yield Move(said, "end_task", {"status": "failed", "report": said[:_LONGEST]})
        return
    yield _tell(USER, say("root_report", package=package[1], count=count), say("root_ends"))
    summary = say("root_summary", package=package[1], count=count)
    yield Move(say("root_done"), "end_task", {"status": "done", "report": summary})


def _architect(requirement: str, parent: str, say: Lines) -> Follow:
    """Plans modules, has programmers write them, puts them together and tests the whole."""
    heard = yield Move(say("architect_looks"), "list_files")
    package = _free(heard.result)
    yield _file(say("architect_plans"), f"{package}/ARCHITECTURE.md", "ARCHITECTURE.md", package)
    yield _file("", f"{package}/__init__.py", "__init__.first.py", package)
    yield _file("", f"{package}/tests/__init__.py", "tests.py", package)
    yield _tell(USER, say("architect_tells", package=package))
    for phase in _PHASES:
        problem = yield from _phase(phase, package, say)
        if problem:
            yield _tell(parent, say("architect_broken", package=package, problem=problem))
            yield Move(say("architect_rests"))
            return
    yield _file(say("architect_puts"), f"{package}/__main__.py", "__main__.py", package)
    yield _file("", f"{package}/__init__.py", "__init__.py", package)
    test = f"{package}/tests/test_{package}.py"
    yield _file(say("architect_tests"), test, f"test_{PACKAGE}.py", package)
    yield _file(say("architect_explains"), f"{package}/README.md", "README.md", package)
    heard = yield from _tested(say("architect_runs"), f"discover -s {package}/tests -t .")
    count, problem = _outcome(heard.result)
    broken = say("architect_broken", package=package, problem=problem)
    yield _tell(parent, broken if problem else say("architect_reports", package=package, count=count))
    yield Move(say("architect_rests"))


def _phase(modules: tuple[str, ...], package: str, say: Lines) -> Part[str]:
    """Has these modules written at the same time; gives what stands in the way, empty if nothing does."""
    who: dict[str, str] = {}
    said: list[tuple[str, str]] = []
    for module in modules:
        heard = yield Move(
            say("architect_spawns", module=f"{module}.py"),
            "spawn_agent",
            {
                "role": "programmer",
                "instructions": say.specification(module, package),
                "name": f"{module}-programmer",
            },
        )
        if not heard.result.get("success"):
            return _problem(heard.result)
        who[str(heard.result["agent_id"])] = module
        said += heard.said
    waits = say("architect_waits", who=", ".join(who))
    reports = yield from _reports(Heard({}, tuple(said)), set(who), waits)
    for agent, module in who.items():
        path = f"{package}/{module}.py"
        heard = yield Move(say("architect_reads", who=agent), "read_file", {"path": path})
        if reports[agent] is None or not heard.result.get("success"):
            return reports[agent] or _problem(heard.result) or agent
        heard = yield from _tested(say("architect_accepts"), f"{package}.tests.test_{module}")
        problem = _outcome(heard.result)[1]
        if problem:
            return reports[agent] or problem
        yield _tell(USER, say("architect_progress", who=agent, module=f"{module}.py"))
        yield Move("", "terminate_agent", {"agent_id": agent})
    return ""


def _programmer(specification: str, parent: str, say: Lines) -> Follow:
    """Writes one module with its tests, and mends it until they pass."""
    found = _MODULE.search(specification)
    if found is None:
        yield Move(say("idle"))
        return
    package, module = found.groups()
    path, test = f"{package}/{module}.py", f"{package}/tests/test_{module}.py"
    first = f"{module}.first.py" if f"{module}.first.py" in _program() else f"{module}.py"
    yield _file(say("programmer_writes", module=path), path, first, package)
    yield _file(say("programmer_tests"), test, f"test_{module}.py", package)
    heard = yield from _tested(say("programmer_runs"), f"{package}.tests.test_{module}")
    count, problem = _outcome(heard.result)
    trouble = ""
    if problem and heard.result.get("error") == "command_failed" and first != f"{module}.py":
        seen = _ASSERTION.search(str(heard.result.get("stderr", "")))
        trouble = say("programmer_trouble")
        said = say("programmer_sees", problem=f"{seen[1]}. " if seen else "", module=path)
        yield from _mended(said, path, _source(first, package), _source(f"{module}.py", package))
        heard = yield from _tested(say("programmer_again"), f"{package}.tests.test_{module}")
        count, problem = _outcome(heard.result)
    done = say("programmer_reports", files=f"{path}, {test}", count=count, trouble=trouble)
    yield _tell(parent, say("programmer_broken", module=path, problem=problem) if problem else done)
    yield Move(say("programmer_rests"))


_SCRIPTS: Final[Mapping[str, Callable[[str, str, Lines], Follow]]] = {
    "root": _root,
    "architect": _architect,
    "programmer": _programmer,
}


def _reports(heard: Heard, agents: set[str], waits: str) -> Part[dict[str, str | None]]:
    """Rest until each of these has reported; None of one that never will."""
    reports: dict[str, str | None] = {}
    while True:
        for author, text in heard.said:
            if author in agents:
                reports[author] = text
            elif author == SYSTEM:
                gone = next((each for each in agents if text.startswith(f"{each} ")), None)
                if gone is not None:
                    reports.setdefault(gone, None)
        if agents <= reports.keys():
            return reports
        heard = yield Move(waits)


def _tell(to: str, text: str, thought: str = "") -> Move:
    return Move(thought, "send_message", {"to": to, "payload": {"text": text}})


def _file(thought: str, path: str, name: str, package: str) -> Move:
    return Move(thought, "write_file", {"path": path, "content": _source(name, package)})


def _source(name: str, package: str) -> str:
    return _program()[name].replace(PACKAGE, package)


def _mended(thought: str, path: str, before: str, after: str) -> Part[None]:
    """Replace what is wrong in a file, and nothing else; the whole file where it is not as it was written."""
    passage = lines_changed(before, after)
    heard = yield Move(thought, "open_buffer", {"source": "file", "path": path})
    name = heard.result.get("buffer")
    if passage is not None and isinstance(name, str):
        heard = yield Move("", f"{name}_replace", {"old_text": passage.old, "new_text": passage.new})
        if heard.result.get("success"):
            heard = yield Move("", f"{name}_flush", {})
    is_written = bool(heard.result.get("success"))
    if isinstance(name, str):
        yield Move("", "close_buffer", {"buffer": name, "discard": True})
    if not is_written:
        yield Move("", "write_file", {"path": path, "content": after})


def _tested(thought: str, what: str) -> Part[Heard]:
    """Run tests, without leaving compiled files behind; once more where they were cut off."""
    move = Move(thought, "run_command", {"command": f"python3 -B -m unittest {what}"})
    heard = yield move
    if heard.result.get("error") in _CUT_OFF:
        again = yield move
        heard = Heard(again.result, (*heard.said, *again.said))
    return heard


def _outcome(result: Mapping[str, Json]) -> tuple[int, str]:
    """How many tests ran, and what is wrong, empty if nothing is."""
    ran = _RAN.search(str(result.get("stderr", "")))
    count = int(ran[1]) if ran else 0
    return count, "" if result.get("success") and count else _problem(result) or f"Ran {count} tests"


def _problem(result: Mapping[str, Json]) -> str:
    seen = _ASSERTION.search(str(result.get("stderr", "")))
    return seen[1] if seen else str(result.get("message", ""))


def _free(listing: Mapping[str, Json]) -> str:
    """A folder that is not there yet: what somebody else wrote is not touched."""
    entries = listing.get("files")
    given = entries if isinstance(entries, list) else []
    there = {str(each["name"]) for each in given if isinstance(each, Mapping)}
    number, name = 1, PACKAGE
    while name in there:
        number += 1
        name = f"{PACKAGE}_{number}"
    return name


@cache
def _program() -> Mapping[str, str]:
    """The files of the program by name."""
    folder = files("watchroom.simulation") / "program"
    return {each.name.removesuffix(".txt"): each.read_text(encoding="utf-8") for each in folder.iterdir()}


@cache
def _texts() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads((files("watchroom.simulation") / "developing.toml").read_text(encoding="utf-8"))
