"""Alerts as terminal sequences: the bell, and two sequences for desktop notifications.

OSC 9 (one text) comes from iTerm2. OSC 777 (title and text) comes from urxvt, and most other terminals accept
it. Kitty, Ghostty, WezTerm, foot and Warp accept both and would notify twice, so known terminals get only one
sequence. Unknown terminals get both. Terminals that support neither show nothing. tmux supports the bell. It
forwards wrapped sequences if ``allow-passthrough`` is on, and drops them otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.alert_policy import AlertMode

BELL: Final = "\a"
MAX_CHARACTERS: Final = 160
"""Maximum number of characters in a field. Desktops show no more, and some terminals drop longer fields."""
_ESCAPE: Final = "\x1b"
_END: Final = "\x1b\\"

_TAKES_777_TERM: Final = ("xterm-kitty", "xterm-ghostty", "foot", "rxvt", "wezterm")
_TAKES_777_PROGRAM: Final = ("ghostty", "WezTerm", "WarpTerminal")
_TAKES_777_MARK: Final = ("KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION")


def alert_sequence(mode: AlertMode, title: str, text: str, environ: Mapping[str, str]) -> str:
    """Return the alert for the terminal that ``environ`` describes. The texts cannot end the sequence early.

    The title must come first and begin with a word, because ConEmu reads a number as a command.
    """
    parts = [BELL] if mode in ("bell", "both") else []
    if mode in ("desktop", "both"):
        notices = _notices(_field(title), _field(text), environ)
        parts += [_through_tmux(each) for each in notices] if environ.get("TMUX") else notices
    return "".join(parts)


def _notices(title: str, text: str, environ: Mapping[str, str]) -> list[str]:
    plain = f"{_ESCAPE}]9;{title}: {text}{_END}"
    titled = f"{_ESCAPE}]777;notify;{title};{text}{_END}"
    if environ.get("LC_TERMINAL") == "iTerm2" or environ.get("TERM_PROGRAM") == "iTerm.app":
        return [plain]
    takes_titled = (
        environ.get("TERM", "").startswith(_TAKES_777_TERM)
        or environ.get("TERM_PROGRAM") in _TAKES_777_PROGRAM
        or any(environ.get(mark) for mark in _TAKES_777_MARK)
    )
    return [titled] if takes_titled else [plain, titled]


def _field(text: str) -> str:
    """Return ``text`` as a field: sanitized, shortened, and without semicolons, which would start the next
    field."""
    shown = sanitize(text[: MAX_CHARACTERS + 1]).replace(";", ",")
    return shown if len(shown) <= MAX_CHARACTERS else shown[: MAX_CHARACTERS - 1] + "…"


def _through_tmux(sequence: str) -> str:
    return f"{_ESCAPE}Ptmux;{sequence.replace(_ESCAPE, _ESCAPE * 2)}{_END}"
