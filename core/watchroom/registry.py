"""The config as the journal has it: who is registered, and the settings of the workspace.

The config file is a view of the journal like any other: registering is a row, and an edit made by hand is
recorded as one. Where people have signed settings, these hold in place of what the file says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.checkout.layout import CONFIG_PATH
from watchroom.errors import ConfigInvalid, JournalDamaged, UnknownAgent, VersionConflict
from watchroom.journal import Journal
from watchroom.model import Row, Zone
from watchroom.rules import settings as signed_settings
from watchroom.rules.config import Agent, Config, add_agents, check_role, parse_recorded_config, render_config
from watchroom.rules.effects import SIGN_SETTINGS
from watchroom.rules.settings import apply_settings_row, with_settings
from watchroom.validation import sha256

CONFIG_HEAD: Final[tuple[Zone, str]] = ("config", CONFIG_PATH)
SETTINGS_HEAD: Final[tuple[Zone, str]] = (signed_settings.ZONE, signed_settings.PATH)
HEADS: Final = (CONFIG_HEAD, SETTINGS_HEAD)
"""Of what a question for several heads asks for the newest versions of the config and of signed settings."""

REGISTER: Final = "register"
"""The tool of the rows by which agents are registered."""


class _Version(NamedTuple):
    """A version of the config file and what it says, a version of the signed settings and these (None: there
    are none), and what holds by both."""

    number: int
    written: Config
    signed: int
    settings: Config | None
    config: Config


_held: Final[ContextVar[dict[Registry, _Version] | None]] = ContextVar("watchroom_config", default=None)
"""The config that each registry has for one tool call."""


class Registry:
    """Who is registered, and the settings, as ``journal`` has them now. May be used from any thread.

    `current` asks the journal which version of the config is the newest one, and reads that once. Within
    `hold`, as each call of a tool is made, it is not asked again.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._newest = _Version(0, Config(), 0, None, Config())
        self._find_flaw: Callable[[Row], str] = lambda row: ""
        self._ever_known: frozenset[str] = frozenset()
        self._looked_through = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Within, on this thread, the config is asked for once: a tool call sees one team throughout, but
        what it registers itself."""
        token = _held.set({})
        try:
            yield
        finally:
            _held.reset(token)

    def check_settings_with(self, find_flaw: Callable[[Row], str]) -> None:
        """Have settings hold only where ``find_flaw`` finds nothing wrong with the row by which they were
        signed: it gives the name of a rule, empty where the row counts."""
        self._find_flaw = find_flaw

    def current(self) -> Config:
        """The newest valid config: one that was broken by hand does not count until it is mended, nor does
        one that is damaged, or nobody could so much as look for the damage. Signed settings hold in place of
        the file's."""
        return self._current().config

    def written(self) -> Config:
        """As `current`, with the settings that the file says, whether they hold or not."""
        return self._current().written

    def settings(self) -> tuple[int, Config | None]:
        """The newest version of the signed settings, and these where there are any that hold."""
        newest = self._current()
        return newest.signed, newest.settings

    def apply_heads(self, config: Row | None, settings: Row | None) -> Config:
        """The config that holds where these are the newest versions (`HEADS`), None where there is none;
        `current` gives it from now on."""
        number, signed = (((head.version or 0) if head else 0) for head in (config, settings))
        found = self._newest
        if (number, signed) != (found.number, found.signed):
            written = found.written if number == found.number else self._read_valid(number)
            chosen = found.settings if signed == found.signed else self._read_signed(settings)
            found = _Version(number, written, signed, chosen, with_settings(written, chosen))
            if (number, signed) > (self._newest.number, self._newest.signed):
                self._newest = found
        held = _held.get()
        if held is not None:
            held[self] = found
        return found.config

    def find_invalid(self) -> int | None:
        """The number of the newest version of the config where that does not count and an earlier one holds,
        because it is not valid or is damaged. None where it counts."""
        head = self._journal.head(*CONFIG_HEAD)
        return head.version if head is not None and self._read(head) is None else None

    def ever_known(self) -> frozenset[str]:
        """The ids of all agents that are or were registered."""
        newest = self._current().number
        if newest > self._looked_through:
            found = set(self._ever_known)
            for row in self._journal.history(*CONFIG_HEAD, after_version=self._looked_through):
                try:
                    found |= parse_recorded_config(row, self._journal.content(row.seq)).agents.keys()
                except (ConfigInvalid, JournalDamaged):
                    # One that was broken by hand registered nobody, and of a damaged one nobody can tell.
                    continue
            self._ever_known, self._looked_through = frozenset(found), newest
        return self._ever_known

    def agent(self, agent_id: str) -> Agent:
        """The agent with the id ``agent_id``. Raises `InvalidAgentId`, `UnknownAgent`."""
        validation.check_agent_id(agent_id)
        agent = self._newest.config.agents.get(agent_id) or self.current().agents.get(agent_id)
        if agent is None:
            raise UnknownAgent(agent=agent_id, known=", ".join(self._newest.config.agents) or "-")
        return agent

    def check_role(self, agent: Agent) -> None:
        """Raises `InvalidRole` where ``agent`` could be taken for another one, or another for it."""
        check_role(agent, self.current())

    def add(self, agents: Iterable[Agent], write: Callable[[str, int], Row]) -> None:
        """Register ``agents`` by handing the new config and the version it follows to ``write``, which
        returns its row. Nothing is written where all are registered so already. Raises `ConfigInvalid`,
        `InvalidAgentId`, `InvalidRole`, and what ``write`` raises."""
        given = list(agents)

        def register(config: Config) -> Config:
            new = [agent for agent in given if config.agents.get(agent.id) != agent]
            return add_agents(config, new) if new else config

        self.change(register, write)

    def change(self, change: Callable[[Config], Config], write: Callable[[str, int], Row]) -> Row | None:
        """Write what ``change`` makes of the config as the file says it by handing it and the version it
        follows to ``write``, which returns its row. Returns that row; None where nothing changes and nothing
        is written. Raises what ``change`` and ``write`` raise."""
        before = self._current()
        version = before.number
        changed = change(before.written)
        if changed == before.written:
            return None
        try:
            row = write(render_config(changed), version)
        except VersionConflict:
            self.apply_heads(*self._journal.heads_of(HEADS))
            raise
        if row.version is None:
            return row
        if self._looked_through == version:
            self._ever_known, self._looked_through = self._ever_known | changed.agents.keys(), row.version
        now = self._newest
        if now.number == version:
            config = with_settings(changed, now.settings)
            self._newest = now._replace(number=row.version, written=changed, config=config)
        held = _held.get()
        if held is not None:
            held[self] = self._newest
        return row

    def _current(self) -> _Version:
        held = (_held.get() or {}).get(self)
        if held is None:
            self.apply_heads(*self._journal.heads_of(HEADS))
            held = (_held.get() or {}).get(self, self._newest)
        return held

    def _read_valid(self, version: int) -> Config:
        """Return the newest config up to ``version`` that is valid. Versions that are planted leave gaps."""
        newest = self._journal.version(*CONFIG_HEAD, version) if version else None
        config = self._read(newest) if newest is not None else None
        if config is not None:
            return config
        for row in reversed(self._journal.history(*CONFIG_HEAD)):
            config = self._read(row) if (row.version or 0) < version else None
            if config is not None:
                return config
        return Config()

    def _read_signed(self, head: Row | None) -> Config | None:
        """Return the settings after ``head``, the newest version of their path; None where those of the file
        hold. A damaged version changes nothing. If all that people signed is damaged, the defaults hold."""
        settings: Config | None = None
        is_signed = False
        for row in self._journal.history(*SETTINGS_HEAD) if head is not None else ():
            if self._find_flaw(row):
                continue
            is_signed = not row.deleted if row.tool == SIGN_SETTINGS else is_signed
            with suppress(ConfigInvalid, JournalDamaged):
                content = self._journal.content(row.seq)
                if row.sha256 is None or sha256((content or "").encode()) == row.sha256:
                    settings = apply_settings_row(settings, row, content)
        return Config() if is_signed and settings is None else settings

    def _read(self, row: Row | None) -> Config | None:
        """The config that ``row`` made, None where it does not count."""
        try:
            return parse_recorded_config(row, self._journal.content(row.seq)) if row else Config()
        except (ConfigInvalid, JournalDamaged):
            return None
