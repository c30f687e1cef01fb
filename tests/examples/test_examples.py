"""The example that needs no framework. The real tier runs all of them (`real/test_examples`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from examples.running import EXAMPLES, run_example

MOST_LINES = 60


def test_two_agents_write_one_plan_and_one_of_them_is_refused_once(tmp_path: Path) -> None:
    run_example("plain_python.py", sys.executable, tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name: str) -> None:
    assert len(EXAMPLES[name].read_text("utf-8").splitlines()) <= MOST_LINES
