"""Commands that are refused by keyword before anything runs.

This check is easy to bypass: a quote, a variable or base64 is enough. Its purpose is an early error for an
honest agent. Isolation is the task of the sandbox.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = r"(?<![\w.-])"
_AFTER: Final = r"(?![\w.(=-])"
"""Characters that must not follow a keyword, or precede it (`_BEFORE`). So parts of other words do not count:
pseudocode, server.shutdown(), sort -su."""

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
    """Return the keyword for which ``command`` is refused, None if there is none.

    A keyword counts only where a shell could read it as the name of a command: ``issue``, ``sudoku`` and
    ``server.shutdown()`` are allowed. A space in a keyword matches any white space. ``> /dev/null``, ``>
    /dev/stdout`` and ``> /dev/stderr`` are harmless and frequent, so they are allowed.
    """
    return next((keyword for keyword, pattern in _PATTERNS if pattern.search(command)), None)
