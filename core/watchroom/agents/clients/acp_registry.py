"""The index of the ACP registry: agents that speak the Agent Client Protocol, and how they are started. Pure.

The index comes from the network. Every text in it is bounded and printable, and every word of a command has
a form that no program reads as an option of ours. Entries that break a rule are left out and counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

INDEX_URL: Final = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
"""The only address from which the index is fetched."""
MAX_INDEX_BYTES: Final = 5_000_000
MAX_AGENTS: Final = 1000
MAX_WORDS: Final = 50
"""Maximum number of arguments, and of environment variables, of a command."""
_NAME: Final = r"[0-9A-Za-z_][0-9A-Za-z_.+-]{0,99}"
_NPX: Final = "npx"
_UVX: Final = "uvx"
_SYSTEMS: Final = {"Linux": "linux", "Darwin": "darwin", "Windows": "windows"}
_MACHINES: Final = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def _only_printable(text: str) -> str:
    """Return ``text`` as one line. Raise ValueError if it has invisible characters."""
    line = " ".join(text.split())
    if not line.isprintable():
        raise ValueError("not printable")
    return line


def _as_it_is(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


_Line = Annotated[str, StringConstraints(min_length=1, max_length=1000), AfterValidator(_only_printable)]
_Word = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_as_it_is)]
_Words = Annotated[tuple[_Word, ...], Field(max_length=MAX_WORDS)]
_Program = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$")]
_Package = Annotated[
    str, StringConstraints(pattern=rf"^(@{_NAME}/)?{_NAME}(\[{_NAME}(,{_NAME})*\])?((@|==){_NAME})?$")
]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]{0,99}$")]
_Variables = Annotated[dict[_Variable, _Word], Field(max_length=MAX_WORDS)]
_Url = Annotated[str, StringConstraints(pattern=r"^https://[!-~]{1,1000}$")]
_Sum = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{64}$")]
_Path = Annotated[str, StringConstraints(pattern=rf"^(\./)?({_NAME}/){{0,9}}{_NAME}$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PackageStart(_Model):
    """A package of npm or PyPI. ``cmd``: its program, if it has another name."""

    package: _Package
    cmd: _Program | None = None
    args: _Words = ()
    env: _Variables = {}


class BinaryStart(_Model):
    """An archive for one platform, with its checksum if there is one. ``cmd``: the program in it."""

    archive: _Url
    sha256: _Sum | None = None
    cmd: _Path
    args: _Words = ()
    env: _Variables = {}


class Distribution(_Model):
    """The ways to get an agent."""

    npx: PackageStart | None = None
    uvx: PackageStart | None = None
    binary: Annotated[dict[str, BinaryStart], Field(max_length=20)] = {}


class RegistryAgent(_Model):
    """An agent of the registry."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
    name: _Line
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+[\w.+-]{0,50}$")]
    description: _Line
    distribution: Distribution
    repository: _Url | None = None
    license: _Line | None = None


class AgentIndex(NamedTuple):
    """The agents of the registry, by id. ``left_out``: the number of entries that break a rule."""

    agents: Mapping[str, RegistryAgent]
    left_out: int = 0

    def search(self, text: str) -> list[RegistryAgent]:
        """Return the agents with all words of ``text`` in their id, name or description, sorted by id."""
        words = text.casefold().split()
        return [
            each
            for _, each in sorted(self.agents.items())
            if all(word in f"{each.id} {each.name} {each.description}".casefold() for word in words)
        ]


class AgentStart(NamedTuple):
    """A way to get and start an agent.

    - ``kind``: ``npx``, ``uvx`` or ``binary``
    - ``program``: the program that must be installed
    - ``arguments``, ``environment``: its arguments and additional variables
    - ``archive``, ``sha256``: where a binary comes from, and its checksum; empty if unknown
    """

    kind: str
    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    archive: str = ""
    sha256: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The exact command line."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return (*(("env", *variables) if variables else ()), self.program, *self.arguments)


def parse_index(text: bytes) -> AgentIndex:
    """Return the index in ``text``. Raise ValueError if it is not an index."""
    if len(text) > MAX_INDEX_BYTES:
        raise ValueError(f"more than {MAX_INDEX_BYTES:,} bytes")
    try:
        given: Any = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    entries = given.get("agents") if isinstance(given, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no list of agents")
    if len(entries) > MAX_AGENTS:
        raise ValueError(f"more than {MAX_AGENTS:,} agents")
    found: dict[str, RegistryAgent] = {}
    for entry in entries:
        try:
            agent = RegistryAgent.model_validate(entry)
        except ValidationError:
            continue
        found.setdefault(agent.id, agent)
    return AgentIndex(found, len(entries) - len(found))


def platform_name(system: str, machine: str) -> str:
    """Return the registry's name of a platform, empty if it has none."""
    known = _SYSTEMS.get(system), _MACHINES.get(machine.lower())
    return "-".join(each or "" for each in known) if all(known) else ""


def list_starts(agent: RegistryAgent, platform: str) -> list[AgentStart]:
    """Return the ways to start ``agent`` on ``platform``. A binary comes first, because its start downloads
    nothing."""
    distribution = agent.distribution
    found: list[AgentStart] = []
    if binary := distribution.binary.get(platform):
        program = os.path.basename(binary.cmd)
        found.append(
            AgentStart("binary", program, binary.args, binary.env, binary.archive, binary.sha256 or "")
        )
    if npx := distribution.npx:
        named = ("--package", npx.package, npx.cmd) if npx.cmd else (npx.package,)
        # Its question would wait at the standard input, which belongs to the protocol.
        found.append(AgentStart(_NPX, _NPX, ("--yes", *named, *npx.args), npx.env))
    if uvx := distribution.uvx:
        named = ("--from", uvx.package, uvx.cmd) if uvx.cmd else (uvx.package,)
        found.append(AgentStart(_UVX, _UVX, (*named, *uvx.args), uvx.env))
    return found


def choose_start(starts: Sequence[AgentStart], installed: Mapping[str, bool]) -> AgentStart | None:
    """Return the first of ``starts`` whose program is ``installed``, None if there is none."""
    return next((each for each in starts if installed.get(each.program)), None)
