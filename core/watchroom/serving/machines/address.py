"""Addresses of workspaces on other machines, and the command line of ssh. Pure."""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

PROGRAM: Final = "watchroom"
"""The default program on the other machine."""
MAX_MACHINES: Final = 20
_MAX_CHARACTERS: Final = 2000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
# The first character is never a hyphen, so that ssh does not read the host as an option.
_HOST: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9]{1,15})?", re.ASCII
)
_HOME: Final = "~/"
_OPTIONS: Final = (
    # No terminal, no agent, no forwarding: the other machine only runs one command.
    *("-T", "-a", "-x"),
    # Nobody can type an answer to ssh here.
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=2"),
    *("-o", "ClearAllForwardings=yes"),
    # A shared connection would end other sessions with it.
    *("-o", "ControlMaster=no"),
)


class AddressProblem(ValueError):
    """An invalid machine. ``rule``: the broken rule: ``name``, ``form``, ``host``, ``password``, ``path``,
    ``program`` or ``number``."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class Machine(NamedTuple):
    """A workspace on another machine.

    - ``name``: the name on this machine.
    - ``address``: the address as the person wrote it.
    - ``host``, ``user``, ``port``: for ssh. Empty and 0 leave them to ssh's own configuration.
    - ``path``: the folder there. A relative path begins in the home folder.
    - ``program``: the program there.
    """

    name: str
    address: str
    host: str
    path: str
    user: str = ""
    port: int = 0
    program: str = PROGRAM

    def command(self, person: str, language: str) -> tuple[str, ...]:
        """Return the command line that starts the far end. ``person``: the name of the person who answers."""
        words = (self.program, "machine", "serve", self.path, "--as", person, "--language", language)
        # A login shell joins and splits the words again.
        remote = "exec " + " ".join(shlex.quote(each) for each in words)
        port = ("-p", str(self.port)) if self.port else ()
        user = ("-l", self.user) if self.user else ()
        return ("ssh", *_OPTIONS, *port, *user, "--", self.host, remote)


def parse_machine(name: str, address: str, program: str = "") -> Machine:
    """Return the machine ``name`` at ``address``. Raise `AddressProblem`.

    - ``address``: ``ssh://[USER@]HOST[:PORT]/PATH``. ``/~/PATH`` begins in the home folder.
    - ``program``: default `PROGRAM`.
    """
    if not _NAME.fullmatch(name):
        raise AddressProblem("name")
    if len(address) > _MAX_CHARACTERS or not address.isprintable():
        raise AddressProblem("form")
    try:
        parts = urlsplit(address)
        port = parts.port or 0
    except ValueError as error:
        raise AddressProblem("form") from error
    if parts.scheme != "ssh" or parts.query or parts.fragment:
        raise AddressProblem("form")
    if parts.password is not None:
        raise AddressProblem("password")
    user, host = parts.username or "", parts.hostname or ""
    # `urlsplit` writes the host in small letters, but aliases in ssh's configuration can have large ones.
    written = parts.netloc.rpartition("@")[2]
    if host and not written.startswith("["):
        host = written.partition(":")[0]
    if not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)):
        raise AddressProblem("host")
    return Machine(
        name, address, host, _remote_path(unquote(parts.path), "path"), user, port, _program(program)
    )


def _program(given: str) -> str:
    return _remote_path(given, "program") if "/" in given else _plain_word(given or PROGRAM)


def _plain_word(given: str) -> str:
    if not _USER.fullmatch(given):
        raise AddressProblem("program")
    return given


def _remote_path(given: str, rule: str) -> str:
    """Return a path for the other machine. It never begins with a hyphen."""
    if given.startswith((f"/{_HOME}", _HOME)):
        given = "./" + given.partition(_HOME)[2]
    is_valid = given.startswith(("/", "./")) and given.isprintable() and len(given) <= _MAX_CHARACTERS
    if not is_valid or given == "/":
        raise AddressProblem(rule)
    return given
