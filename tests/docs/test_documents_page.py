"""The page on realtime documents, tried as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from watchroom.algorithms.crdt import FIELD_TYPES

PAGE = (Path(__file__).parents[2] / "docs/documents.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_example_does_what_the_page_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "Sprint 1" in done.stdout
    for name in ("alice", "bob", "charlie"):
        assert done.stdout.count(f"{name} was here.") == 1


def test_the_page_names_every_type() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE) == [
        "lww_register",
        "rga",
        "or_set",
        "lww_map",
        "pn_counter",
    ]
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)) == set(FIELD_TYPES)
