"""No call of one agent holds up another one for longer than a commit takes: counted in rows and holds of the lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from hostile.worst_calls import WORST_CALLS, count_rows, leave_files
from watchroom import Toolbox, Workspace
from watchroom.features.tasks.files import BATCH_ROWS

CALLS: Final[dict[str, Callable[[Toolbox], None]]] = {
    **WORST_CALLS,
    "20,000 files": partial(leave_files, count=2_000),
}
"""The files are fewer than their name says: each batch is like the next, and all of them take ten seconds."""
COMMANDS: Final = ("a tree 1,100 folders deep", "20,000 files", "8 sparse files of 1 GB")


@pytest.fixture(scope="module")
def has_sandbox(tmp_path_factory: pytest.TempPathFactory) -> bool:
    with Workspace.open(tmp_path_factory.mktemp("probe")) as workspace:
        return workspace.commands.sandbox.best is not None


@pytest.mark.parametrize("call", CALLS)
def test_a_call_lets_go_of_the_lock_after_few_rows(call: str, tmp_path: Path, has_sandbox: bool) -> None:
    if call in COMMANDS and not has_sandbox:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    use = count_rows(CALLS[call], tmp_path)
    assert 0 < use.max_rows <= BATCH_ROWS
    assert use.appends >= use.rows / BATCH_ROWS
