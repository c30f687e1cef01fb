"""Search queries of people and programs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final, Self

from watchroom import Workspace
from watchroom.errors import WatchroomError
from watchroom.history.search.query import parse_query

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import mutated, some_text
from reliability.fuzzing.oracle import refusal_kind, require

_WORDS: Final = (
    *(
        "one",
        "看板",
        "timeout",
        "agent:alice",
        "agent:",
        "zone:collab",
        "zone:x",
        '"one two"',
        '"',
        '"看',
        "a*",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        "body:",
        "{a b}",
        "^x",
        "-x",
        "+x",
        "(",
        ")",
        "\x1f",
        "\ue000",
        "c0",
        "\0",
    ),
)
_TEXTS: Final = ("one two three timeout\n看板 agent\n", "x" * 5000, "a b " * 2000, "\x1b[2J \u202e one\n")
_PATIENCE: Final = 30.0


class Searches:
    """Checks that each search is refused with a code, or answered with correct excerpts."""

    name = "searches"
    size = 2_000
    period = 20_000
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._parent = folder

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            top = stack.enter_context(tempfile.TemporaryDirectory(dir=self._parent))
            self._workspace = stack.enter_context(Workspace.open(Path(top, "team"), agents=["alice"]))
            alice = self._workspace.tools("alice")
            for number, text in enumerate(_TEXTS):
                arguments = {"filepath": f"{number}.md", "content": text, "message": "one"}
                require(alice.dispatch_tool_call("collab_write", arguments)["success"], "a first file")
            self._wait_for_index()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _wait_for_index(self) -> None:
        last, until = self._workspace.journal.last_seq(), time.monotonic() + _PATIENCE
        while self._workspace.search(parse_query("one")).indexed < last:
            require(time.monotonic() < until, "the index is not kept up")
            time.sleep(0.05)

    def generate(self, chance: Random) -> bytes:
        words = (
            chance.choice(_WORDS) if chance.random() < 0.7 else some_text(chance)
            for _ in range(chance.randint(0, 6))
        )
        return " ".join(words).encode()

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        return mutated(data, chance, self.size, tuple(each.encode() for each in _WORDS), other)

    def run(self, data: bytes) -> Hashable:
        query = parse_query(data.decode("utf-8", "surrogateescape"))
        try:
            found = self._workspace.search(query)
        except WatchroomError as error:
            return refusal_kind(error)
        return len(found.hits), query.zone, query.agent is None

    def check(self) -> Sequence[str]:
        return ()
