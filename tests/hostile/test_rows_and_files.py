"""Random rows written with SQL past every check: no file outside the workspace is read or changed for them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random, randrange
from typing import Final

import pytest
from cli.running import Captured
from effort import IS_HUNTING, rounds
from hostile.rows import RowMaker, insert_into_file, insert_into_server
from hostile.world import SENTINEL, World, make_world, texts_of, use_commands
from watchroom import Workspace
from watchroom.kernel.checkout.location import find_journal
from watchroom.kernel.journal import open_journal

pytestmark = pytest.mark.slow(30)

BATCHES: Final = {"sqlite": rounds(1, 5), "postgres": rounds(1, 5)}
ROWS: Final = {"sqlite": rounds(400, 20_000), "postgres": rounds(200, 2000)}
"""Rows of a batch: 10^5 on SQLite and 10^4 on a server where faults are hunted."""


@pytest.mark.parametrize(
    "journal_name", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
def test_random_rows_touch_nothing_outside_and_every_command_reads_on(
    journal_name: str, root: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Rows are added in batches, and everything is used after each; the commands after the last of them."""
    seed = randrange(2**32) if IS_HUNTING else 4
    world = make_world(tmp_path, root)
    before = world.surroundings()
    maker: RowMaker | None = None
    taken = 0
    for _ in range(BATCHES[journal_name]):
        last = _newest(world)
        if maker is None:
            maker = RowMaker(Random(seed), world.outside, last=last, with_nul=journal_name == "sqlite")
        maker.skip_to(last)
        rows = list(maker.rows(ROWS[journal_name]))
        address = find_journal(root) or ""
        taken += (
            insert_into_file(root, rows) if journal_name == "sqlite" else insert_into_server(address, rows)
        )
        with Workspace.open(root) as workspace:
            workspace.scan()
            workspace.flush()
            workspace.task_files.record_all()
            workspace.repair()
        assert world.surroundings() == before, seed
    for command, _, _ in use_commands(world, capsys, _newest(world)):
        assert world.surroundings() == before, (seed, command)
    with closing(open_journal(find_journal(root) or "")) as journal:
        assert not any(SENTINEL in text for text in texts_of(journal)), seed
    assert taken > BATCHES[journal_name] * ROWS[journal_name] * 0.9, seed


def _newest(world: World) -> int:
    with closing(open_journal(find_journal(world.root) or "")) as journal:
        return journal.last_seq()
