"""Running ``true`` in a sandbox: ours, bubblewrap alone, and those of two coding agents."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from typing import Final

from measure import clocked, scratch
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.runner import run_command

from peers.comparison import Contender, Group, Row, RunContext, Unmeasured
from peers.peer import NodeProgram, SystemProgram

_BUBBLEWRAP: Final = SystemProgram("bubblewrap", "bwrap", "bubblewrap")
_CODEX: Final = NodeProgram("codex", "@openai/codex")
_SRT: Final = NodeProgram("srt", "@anthropic-ai/sandbox-runtime", ("bwrap", "socat", "rg"))
_BARE: Final = [
    *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *("--unshare-all", "--die-with-parent", "--new-session"),
]
_CODEX_ARGUMENTS: Final = ("sandbox", "-c", 'sandbox_mode="workspace-write"', "--", "true")
_ROUNDS: Final = 9
_BURST: Final = 3


def _measure(context: RunContext) -> list[Row]:
    backend = SandboxProbe.run().best
    if backend is None:
        return [Unmeasured(each.name, "Watchroom finds no sandbox on this machine") for each in GROUP.peers]
    with scratch() as folder:
        real = os.path.realpath(folder)
        settings = os.path.join(folder, "settings.json")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(
                '{"network": {"allowedDomains": [], "deniedDomains": []},'
                ' "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}'
            )
        # Codex creates links to itself in its folder, and refuses one below the folder of temporary files.
        home = context.folder / _CODEX.name / "home"
        home.mkdir(parents=True, exist_ok=True)

        def run(command: list[str], n: int) -> None:
            subprocess.run(
                command,
                cwd=real,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                env={**os.environ, "CODEX_HOME": str(home)},
            )

        def ours(n: int) -> None:
            if run_command("true", real, backend=backend).exit_code:
                raise RuntimeError("the command failed")

        contenders = [
            Contender(
                _BUBBLEWRAP,
                clocked(partial(run, [*_BARE, "--bind", real, real, "/bin/sh", "-c", "true"])),
                remark="the whole system can be read",
                behind="ours also bounds memory, processes and time (control group), filters system calls, "
                "and reads the output as it comes",
            ),
            Contender(
                _CODEX,
                clocked(partial(run, [_CODEX.program(context.folder, "codex"), *_CODEX_ARGUMENTS])),
                remark="bubblewrap and seccomp; as a command, so Node starts each time, "
                "which it does not inside Codex",
            ),
            Contender(
                _SRT,
                clocked(partial(run, [_SRT.program(context.folder, "srt"), "-s", settings, "true"])),
                remark="bubblewrap and two proxies; as a command, so Node starts each time, "
                "which it does not inside Claude Code",
            ),
        ]
        return context.compare(
            "`true`",
            clocked(ours),
            [each for each in contenders if context.has(each.peer)],
            rounds=_ROUNDS,
            burst=_BURST,
            warm=1,
        )


GROUP: Final = Group(
    "sandboxes",
    "Sandboxes",
    "From the call to the end of `true` in a sandbox that may write to one folder and has no network.",
    (_BUBBLEWRAP, _CODEX, _SRT),
    _measure,
)
