"""The command lines of hooks that run this program."""

from __future__ import annotations

import shutil

from watchroom.agents.clients import client_program
from watchroom.agents.clients.configuration import HookProgram
from watchroom.texts import Catalogue

from watchroom_cli.command import isolated_program, own_program


def hook_program(root: str, client: str, of_core: Catalogue, common: str = "") -> HookProgram:
    """Return the program that hooks run, independent of the client's environment.

    - ``root``: the workspace's folder.
    - ``client``: the client's name.
    - ``of_core``: the core's texts.
    - ``common``: see `HookProgram`.
    """
    program, before = own_program(), isolated_program()
    needed = (before[0], before[-1], program[0])
    missing = of_core("hook.missing", program=program[0], root=root, client=client)
    curl, timeout = shutil.which("curl"), shutil.which("timeout")
    return HookProgram(
        program,
        before,
        tuple(dict.fromkeys(needed)),
        missing,
        curl or "",
        client_program.socket_path(),
        (timeout, str(round(client_program.INPUT_SECONDS))) if timeout else (),
        common,
    )
