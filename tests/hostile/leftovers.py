"""What a command can leave in its task's folder to stop or slow down whoever looks at it next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from watchroom.platform.sandbox.supervisor import remove_tree


def _python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)}"


def deep_tree(depth: int = 1_100) -> str:
    """A command that makes folders in folders, named ``d``, with a file at the end."""
    return _python(
        f"import os\nfor _ in range({depth}):\n  os.mkdir('d'); os.chdir('d')\nopen('end', 'w').write('x')"
    )


def small_files(count: int = 20_000) -> str:
    """A command that makes so many files in a folder ``many``."""
    return _python(
        f"import os\nos.mkdir('many')\nfor n in range({count}): open(f'many/{{n}}', 'w').write(str(n))"
    )


def sparse_files(count: int = 8, size: int = 1_000_000_000) -> str:
    """A command that makes so many files that are that long, and take no place on disk."""
    return _python(f"for n in range({count}): open(f'sparse{{n}}', 'w').truncate({size})")


ODD_TREE: Final = _python(
    "import os\n"
    "os.symlink('loop', 'loop'); os.symlink('.', 'here'); os.symlink('/', 'root')\n"
    "os.mkfifo('pipe'); os.mkdir('closed', 0); open('shut', 'w').close(); os.chmod('shut', 0)\n"
    "open(b'\\xff', 'w').close(); open('\\\\udcff', 'w').close(); open('a\\nb\\x1b[31m', 'w').close()\n"
    "open('old', 'w').close(); os.utime('old', (-10**10, -10**10)); os.utime('.', (10**10, 10**10))\n"
    "top = os.getcwd()\n"
    "for _ in range(8):\n  os.mkdir('n' * 255); os.chdir('n' * 255)\n"
    "open('x' * 255, 'w').close()"
)
"""A command that makes links in circles, what is no file, what may not be read, names that are no text, times
beyond all calendars, and a path longer than the system takes."""


@contextmanager
def emptied_after(folder: Path) -> Iterator[Path]:
    """Take away afterwards what nothing that recurses could."""
    try:
        yield folder
    finally:
        remove_tree(str(folder))
