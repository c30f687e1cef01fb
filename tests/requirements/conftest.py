"""Each case of the specifications on the journal in a folder and on the one of a server.

What is promised belongs to no backend.
"""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where the option ``--journal`` names a journal, that one counts."""
    if "journal_name" not in metafunc.fixturenames or metafunc.config.getoption("--journal"):
        return
    names = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
    if metafunc.definition.path.parent.name == "files":
        names.append("memory")
    metafunc.parametrize("journal_name", names, indirect=True)
