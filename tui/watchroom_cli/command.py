"""A command of the command line."""

from __future__ import annotations

import gc
import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import escape_invisible

Group: TypeAlias = Literal["start", "watch", "agents", "history", "people", "machines"]


class Command(NamedTuple):
    """A command. Its module has the functions ``declare_{name}`` and ``run_{name}``.

    - ``group``: the package of the module, and the heading in the help.
    - ``module``: the module's name, default: ``name``.
    - ``function``: the name in the two functions, default: ``name``.
    - ``passes_arguments``: whether another program parses the arguments. The command then gets the arguments
      as ``arguments``, and its own name as ``command``.
    """

    name: str
    group: Group
    module: str = ""
    function: str = ""
    passes_arguments: bool = False

    def declare(self, parser: ArgumentParser, texts: Catalogue) -> None:
        """Add the command's arguments to ``parser``."""
        self._function("declare")(parser, texts)

    def run(self, args: Namespace, texts: Catalogue) -> int:
        """Run the command and return the exit status. Raise `WatchroomError` and `WrongUsage`."""
        return cast(int, self._function("run")(args, texts))

    def _function(self, kind: str):  # type: ignore[no-untyped-def]  # the two kinds differ in their types
        with collector_paused():
            module = import_module(f"watchroom_cli.{self.group}.{self.module or self.name}")
        return getattr(module, f"{kind}_{self.function or self.name}")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector while slow modules are loaded. Modules create no garbage when loaded, and
    collection would take a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def add_utc_argument(parser: ArgumentParser, texts: Catalogue) -> None:
    """Add the option ``--utc``, which `main` applies."""
    parser.add_argument("--utc", action="store_true", help=texts("cli.argument.utc"))


def print_json(value: Mapping[str, object] | Sequence[object], *, indent: int | None = None) -> None:
    """Print ``value`` as JSON. Non-ASCII characters are escaped if the output is not UTF-8."""
    print(_dump(value, indent), flush=True)


def print_json_line(value: Mapping[str, object]) -> None:
    """Print ``value`` as one line of JSON without control characters, also in a pipe. The line and its
    newline are one write, so that a signal cannot separate them."""
    print(escape_invisible(_dump(value)) + "\n", end="", flush=True)


def _dump(value: object, indent: int | None = None) -> str:
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, ensure_ascii=not is_unicode, indent=indent)


def own_program() -> tuple[str, ...]:
    """Return the command line that starts this program, independent of the environment."""
    own = Path(sys.executable).with_name("watchroom")
    return (str(own),) if os.access(own, os.X_OK) else (sys.executable, "-P", "-m", "watchroom_cli.main")


def isolated_program() -> tuple[str, ...]:
    """Return the start of the command line of hooks and servers, without site packages. `own_program` is the
    rest."""
    from watchroom.agents.clients import run_client_program

    return sys.executable, "-I", "-S", run_client_program.__file__
