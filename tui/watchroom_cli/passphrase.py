"""Ask for passphrases: hidden at a terminal, otherwise from the next line of standard input."""

from __future__ import annotations

import getpass
import sys

from watchroom_tui.presentation.usage import WrongUsage


def ask_passphrase(question: str) -> str:
    """Return the passphrase that the person types after the prompt ``question``."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{question} ")
    return sys.stdin.readline().removesuffix("\n")


def choose_passphrase(question: str, again: str, problem: str) -> str:
    """Ask for a new passphrase, twice at a terminal, and return it.

    - ``question``, ``again``: the texts of the first and the second prompt.
    - ``problem``: the error text.

    Raise `WrongUsage` with ``problem`` if the answers differ or are empty.
    """
    chosen = ask_passphrase(question)
    if not chosen or (sys.stdin.isatty() and ask_passphrase(again) != chosen):
        raise WrongUsage(problem)
    return chosen
