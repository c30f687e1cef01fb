"""docs/architecture.md: its picture of the layers is the import contract, and its folders exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")


def test_the_picture_of_the_layers_is_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["watchroom"])
    picture = re.search(r"```layers\n(.*?)```", PAGE, re.DOTALL)
    assert picture is not None
    assert [line.split()[0] for line in picture[1].splitlines()] == layers


def test_each_folder_that_the_page_names_is_there() -> None:
    core = ROOT / "core/watchroom"
    named = set(re.findall(r"`([a-z_]+)/`", PAGE))
    assert named
    missing = [each for each in named if not ((core / each).is_dir() or (ROOT / each).is_dir())]
    assert missing == []


def test_no_module_of_the_core_imports_itself_in_a_circle() -> None:
    program = (
        "import grimp; graph = grimp.build_graph('watchroom');"
        "found = [(a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a)"
        " if a < b and graph.chain_exists(importer=b, imported=a)]; print(found)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_reference_is_what_the_docstrings_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make_reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
