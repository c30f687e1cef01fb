"""The house itself: style, types, and the direction of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
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
    "crdt/clock.py": "for documents that are in no workspace",
    "disk.py": "times of files on this machine",
    "editing/editor.py": "for editors that are in no workspace",
    "journal": "the clock that all others ask",
    "runtime/agent.py": "for steps that are in no workspace",
    "runtime/models/retry_policy.py": "a date in the answer of a model's server",
    "runtime/state.py": "for steps that are in no workspace",
    "simulation/player.py": "text that a simulated agent writes",
    "zones/task_recording.py": "times of files on this machine",
}
"""What may read the machine's clock in the core, and for what."""
CLOCKS = ("time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today")


PLATFORM_QUESTIONS = ("sys.platform", "os.name", "platform.system", "os.uname")
PLATFORM_ASKERS = {
    "platforms": "the seam",
    "sandbox": "what commands run in is found by what this machine has",
    "signing/serve_key.py": "what keeps the memory of a process closed",
}
"""What may ask in the core which operating system this is, and for what."""


@pytest.mark.parametrize("check", CHECKS)
def test_the_whole_house_passes(check: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
        "import sys; from watchroom_tui.cli import main; main(['call', '.', 'nobody', 'collab_list']);"
        "print([name for name in ('textual', 'pygit2', 'watchfiles') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_first_paint_waits_for_no_zone_no_editor_and_no_validation_library() -> None:
    program = (
        "import sys; import watchroom_tui.commands.dashboard, watchroom_tui.app;"
        "import watchroom_tui.screens.overview.screen;"
        "slow = ('pydantic', 'pygit2', 'httpx', 'tomlkit', 'watchroom.zones', 'watchroom.editing', 'watchroom.merge');"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def _clocks_read(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
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


def test_only_platforms_ask_which_operating_system_this_is() -> None:
    core = ROOT / "core" / "watchroom"
    found = {
        str(module.relative_to(core))
        for module in core.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PLATFORM_QUESTIONS
    }
    assert {name for name in found if not name.startswith(tuple(PLATFORM_ASKERS))} == set()
    assert {each for each in PLATFORM_ASKERS if not any(name.startswith(each) for name in found)} == set()
