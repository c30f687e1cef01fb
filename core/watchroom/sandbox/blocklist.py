"""Commands that are refused before anything runs, by keyword.

This is a first check, and easy to get around: a quote, a variable or base64 is enough. It tells an honest
agent early what is not done here. The sandbox is what isolates commands.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = r"(?<![\w.-])"
_AFTER: Final = r"(?![\w.(=-])"
"""What would make a command's name a part of another word: pseudocode, server.shutdown(), sort -su."""

_PATTERNS: Final = tuple(
    (keyword, re.compile(pattern))
    for keyword, pattern in (
        ("rm -rf /", rf"{_BEFORE}rm\s+-rf\s+/"),
        ("sudo", rf"{_BEFORE}sudo{_AFTER}"),
        ("su ", rf"{_BEFORE}su\s"),
        ("chmod 777", rf"{_BEFORE}chmod\s+777"),
        ("mkfs", rf"{_BEFORE}mkfs(?![\w(=-])"),
        ("dd if=", rf"{_BEFORE}dd\s+if="),
        ("> /dev/", r">\s*/dev/(?!(?:null|stdout|stderr)(?![\w/.-]))"),
        ("shutdown", rf"{_BEFORE}shutdown{_AFTER}"),
        ("reboot", rf"{_BEFORE}reboot{_AFTER}"),
        ("init 0", rf"{_BEFORE}init\s+0{_AFTER}"),
        ("init 6", rf"{_BEFORE}init\s+6{_AFTER}"),
    )
)

KEYWORDS: Final = tuple(keyword for keyword, _ in _PATTERNS)


def find_blocked_keyword(command: str) -> str | None:
    """The keyword for which ``command`` is refused, None where it holds none.

    A keyword counts where a shell could take it for a command's name: ``issue``, ``sudoku`` and
    ``server.shutdown()`` are allowed. Any white space between its words counts as one blank. ``> /dev/null``,
    ``> /dev/stdout`` and ``> /dev/stderr`` do no harm and are in every other script, so they are allowed.
    """
    return next((keyword for keyword, pattern in _PATTERNS if pattern.search(command)), None)
