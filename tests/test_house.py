"""Rules for the whole repository: style, types, and the direction of imports."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CHECKS = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
}


CLOCK_READERS = {
    "algorithms/crdt/clock.py": "for documents that are in no workspace",
    "algorithms/editing/editor.py": "for editors that are in no workspace",
    "kernel/journal": "the clock that all others ask",
    "platform/disk.py": "times of files on this machine",
    "features/sessions/runtime/agent.py": "for steps that are in no workspace",
    "features/sessions/runtime/models/retry_policy.py": "a date in the answer of a model's server",
    "features/sessions/runtime/state.py": "for steps that are in no workspace",
    "agents/simulation/player.py": "text that a simulated agent writes",
    "features/tasks/files.py": "times of files on this machine",
    "features/trees/index_lock.py": "times of files on this machine",
    "features/trees/recorder.py": "times of files on this machine",
    "serving/machines/connection.py": "times of a connection, which has no journal on this machine",
}
"""The modules of the core that read the machine's clock, and why."""
CLOCKS = ("time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today")


PLATFORM_QUESTIONS = ("sys.platform", "os.name", "platform.system", "os.uname")
PLATFORM_ASKERS = {
    "platform": "operating systems",
    "platform/sandbox": "what commands run in is found by what this machine has",
    "platform/signing/serve_key.py": "what keeps the memory of a process closed",
}
"""The modules of the core that query the operating system, and why."""


ZONE_NAMES = {"collab": "files", "handoff": "handoffs", "board": "boards", "realtime": "documents"}
"""Zones whose names are not common words, each with the folder of its feature."""
ZONE_NAMERS = {
    "kernel/zones.py": "the records of all zones",
    "model.py": "the names of all zones",
    "history/seal/verify_report.py": "it runs without the package",
    "agents/simulation/scenario.py": "words of scenario files",
}
"""The modules that name a zone outside of its feature, and why. Other modules use a record in
``kernel/zones.py``, or import a constant of the feature."""


@pytest.mark.parametrize("check", CHECKS)
def test_the_whole_house_passes(check: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def parse(module: Path) -> ast.Module:
    # Before Python 3.11.5, this fails if a finalizer formats a traceback meanwhile.
    gc.disable()
    try:
        return ast.parse(module.read_text())
    finally:
        gc.enable()


def test_imports_run_downward_only() -> None:
    command = (
        "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " kept, 0 broken" in done.stdout


def test_the_command_line_starts_calls_without_the_dashboard() -> None:
    program = (
        "import sys; from watchroom_cli.main import main; main(['call', '.', 'nobody', 'collab_list']);"
        "print([name for name in ('textual', 'pygit2', 'watchfiles') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_first_paint_waits_for_no_zone_no_editor_and_no_validation_library() -> None:
    program = (
        "import sys; import watchroom_cli.start.dashboard, watchroom_tui.app;"
        "import watchroom_tui.screens.overview.screen;"
        "slow = ('pydantic', 'pygit2', 'httpx', 'tomlkit', 'watchroom.features.zones', 'watchroom.algorithms.editing', 'watchroom.algorithms.merge');"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def _clocks_read(module: Path) -> Iterator[str]:
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith(CLOCKS):
            yield f"{ast.unparse(node)} in line {node.lineno}"
        if isinstance(node, ast.Call) and ast.unparse(node) in ("time.gmtime()", "time.localtime()"):
            yield f"{ast.unparse(node)} in line {node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (
                f"{each.name} in line {node.lineno}" for each in node.names if each.name[:4] == "time"
            )


def test_processes_agree_on_the_time_by_the_journal() -> None:
    core = ROOT / "core" / "watchroom"
    found = {
        str(module.relative_to(core)): clocks
        for module in core.rglob("*.py")
        if (clocks := [*_clocks_read(module)])
    }
    assert found
    allowed = tuple(CLOCK_READERS)
    assert {name: clocks for name, clocks in found.items() if not name.startswith(allowed)} == {}
    assert {each for each in allowed if not any(name.startswith(each) for name in found)} == set()


def test_only_the_platform_package_asks_which_operating_system_this_is() -> None:
    core = ROOT / "core" / "watchroom"
    found = {
        str(module.relative_to(core))
        for module in core.rglob("*.py")
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PLATFORM_QUESTIONS
    }
    assert {name for name in found if not name.startswith(tuple(PLATFORM_ASKERS))} == set()
    assert {each for each in PLATFORM_ASKERS if not any(name.startswith(each) for name in found)} == set()


def test_no_context_variable_carries_what_an_argument_should() -> None:
    places = [Path("core"), Path("tui"), Path("whiteboards")]
    sources = [source for place in places for source in (ROOT / place).rglob("*.py")]
    assert sources
    assert [str(each) for each in sources if "ContextVar(" in each.read_text()] == []


def test_the_core_has_few_layers_and_few_places() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["watchroom"])
    assert len(layers) <= 12
    entries = {each.name for each in (ROOT / "core" / "watchroom").iterdir()} - {"__pycache__"}
    assert len(entries) <= 14


def test_zones_are_named_in_their_features() -> None:
    core = ROOT / "core" / "watchroom"
    found = {
        str(module.relative_to(core))
        for module in core.rglob("*.py")
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Constant)
        and node.value in ZONE_NAMES
        and module.relative_to(core).parts[:2] != ("features", ZONE_NAMES[node.value])
    }
    assert found == set(ZONE_NAMERS)
