"""Alerts as terminal sequences: the bell, and two sequences for desktop notifications.

OSC 9 (one text) comes from iTerm2, OSC 777 (title and text) from urxvt, and most others accept the latter.
Kitty, Ghostty, WezTerm, foot and Warp accept both and would notify twice, so a known terminal gets one of
them. Only an unknown one gets both. A terminal that knows neither shows nothing. tmux knows the bell. It
passes on the rest if it is wrapped and ``allow-passthrough`` is on, and drops it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.alert_policy import AlertMode

BELL: Final = "\a"
MAX_CHARACTERS: Final = 160
"""Max characters of a field. Desktops show no more, and some terminals drop longer ones."""
_ESCAPE: Final = "\x1b"
_END: Final = "\x1b\\"

_TAKES_777_TERM: Final = ("xterm-kitty", "xterm-ghostty", "foot", "rxvt", "wezterm")
_TAKES_777_PROGRAM: Final = ("ghostty", "WezTerm", "WarpTerminal")
_TAKES_777_MARK: Final = ("KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION")


def alert_sequence(mode: AlertMode, title: str, text: str, environ: Mapping[str, str]) -> str:
    """Return the sequence for the terminal that ``environ`` describes. No text can end the sequence early.

    The title comes first and is a word, because ConEmu reads a number as a command.
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
    """Return a field: no control characters, shortened, and without the semicolon that would start the next
    one."""
    shown = sanitize(text[: MAX_CHARACTERS + 1]).replace(";", ",")
    return shown if len(shown) <= MAX_CHARACTERS else shown[: MAX_CHARACTERS - 1] + "…"


def _through_tmux(sequence: str) -> str:
    return f"{_ESCAPE}Ptmux;{sequence.replace(_ESCAPE, _ESCAPE * 2)}{_END}"
