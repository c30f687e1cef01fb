"""The config in force: the registered agents and the settings in the journal.

The config file is a view of the journal: registering an agent is a row, and an external edit becomes a row.
Signed settings replace the settings in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import ConfigInvalid, JournalDamaged, UnknownAgent, VersionConflict
from watchroom.features.config.rows import (
    SETTINGS_PATH,
    SETTINGS_ZONE,
    Agent,
    Config,
    add_agents,
    apply_settings_row,
    dump_config,
    parse_recorded_config,
    with_settings,
)
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import Row, Zone
from watchroom.validation import sha256

CONFIG_HEAD: Final[tuple[Zone, str]] = ("config", CONFIG_PATH)
SETTINGS_HEAD: Final[tuple[Zone, str]] = (SETTINGS_ZONE, SETTINGS_PATH)
HEADS: Final = (CONFIG_HEAD, SETTINGS_HEAD)
"""The heads that `Registry.apply_heads` takes. One query can read both."""

REGISTER: Final = "register"
"""The tool of rows that register agents."""


class _Version(NamedTuple):
    """The newest versions of the config file and of the signed settings.

    - ``number``, ``written``: the version of the file and its contents.
    - ``signed``, ``settings``: the version of the signed settings and its contents, None if unsigned.
    - ``config``: the config in force.
    """

    number: int
    written: Config
    signed: int
    settings: Config | None
    config: Config


class Registry:
    """The registered agents and the settings in ``journal``. Thread-safe.

    `current` queries the newest version of the config, and parses each version once. A tool call uses the
    config from the start of the call.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._newest = _Version(0, Config(), 0, None, Config())
        self._find_flaw: Callable[[Row], str] = lambda row: ""
        self._ever_known: frozenset[str] = frozenset()
        self._looked_through = 0

    def check_settings_with(self, find_flaw: Callable[[Row], str]) -> None:
        """Ignore signed settings whose row has a flaw.

        ``find_flaw``: returns the rule that a row breaks; empty if the row counts.
        """
        self._find_flaw = find_flaw

    def current(self, call: CallContext | None = None) -> Config:
        """Return the newest valid config. For a ``call`` of a toolbox, return the config at its start.

        Invalid and damaged versions are skipped. Signed settings replace the settings of the file.
        """
        caller = call.caller if call is not None else None
        return caller.config if caller is not None else self._current().config

    def written(self) -> Config:
        """Return the newest valid config with the settings of the file, even if they are not in force."""
        return self._current().written

    def settings(self) -> tuple[int, Config | None]:
        """Return the newest version of the signed settings, and the settings; None if no signed settings are
        in force."""
        newest = self._current()
        return newest.signed, newest.settings

    def apply_heads(self, config: Row | None, settings: Row | None) -> Config:
        """Return the config in force for these newest versions, and cache it for `current`.

        ``config``, ``settings``: the rows at `HEADS`, None for a path without versions.
        """
        number = (config.version or 0) if config else 0
        signed = (settings.version or 0) if settings else 0
        found = self._newest
        if (number, signed) != (found.number, found.signed):
            written = found.written if number == found.number else self._read_valid(number)
            chosen = found.settings if signed == found.signed else self._read_signed(settings)
            found = _Version(number, written, signed, chosen, with_settings(written, chosen))
            if (number, signed) > (self._newest.number, self._newest.signed):
                self._newest = found
        return found.config

    def find_invalid(self) -> int | None:
        """Return the number of the newest version of the config file if it is invalid or damaged. Then an
        earlier version is in force. None if it is valid."""
        head = self._journal.head(*CONFIG_HEAD)
        return head.version if head is not None and self._read(head) is None else None

    @property
    def cached(self) -> Config:
        """The newest config that this process has read. No query is made, so another process may have changed
        it."""
        return self._newest.config

    def ever_known(self, *, is_current: bool = False) -> frozenset[str]:
        """Return the ids of all agents that are or were registered.

        ``is_current``: the caller has just called `apply_heads`, so that no query is needed.
        """
        newest = (self._newest if is_current else self._current()).number
        if newest > self._looked_through:
            found = set(self._ever_known)
            for row in self._journal.history(*CONFIG_HEAD, after_version=self._looked_through):
                try:
                    found |= parse_recorded_config(row, self._journal.content(row.seq)).agents.keys()
                except (ConfigInvalid, JournalDamaged):
                    # An invalid version registered nobody. A damaged version cannot be read.
                    continue
            self._ever_known, self._looked_through = frozenset(found), newest
        return self._ever_known

    def agent(self, agent_id: str) -> Agent:
        """Return the agent with the id ``agent_id``. Raise `InvalidAgentId`, `UnknownAgent`."""
        validation.check_agent_id(agent_id)
        agent = self._newest.config.agents.get(agent_id) or self.current().agents.get(agent_id)
        if agent is None:
            raise UnknownAgent(agent=agent_id, known=", ".join(self._newest.config.agents) or "-")
        return agent

    def add(
        self, agents: Iterable[Agent], write: Callable[[str, int], Row], *, is_current: bool = False
    ) -> None:
        """Register ``agents``. Nothing is written if all of them are already registered.

        - ``write``: writes the new config as the version after the given number, and returns the row.
        - ``is_current``: the caller has just called `apply_heads`, so that no query is needed.

        Raise `ConfigInvalid`, `InvalidAgentId`, `InvalidRole`, and the errors of ``write``.
        """
        given = list(agents)

        def register(config: Config) -> Config:
            new = [agent for agent in given if config.agents.get(agent.id) != agent]
            return add_agents(config, new) if new else config

        self.change(register, write, is_current=is_current)

    def change(
        self,
        change: Callable[[Config], Config],
        write: Callable[[str, int], Row],
        *,
        is_current: bool = False,
    ) -> Row | None:
        """Apply ``change`` to the config of the file. See `add` for ``write`` and ``is_current``.

        Return the row; None if nothing changes. Raise the errors of ``change`` and ``write``.
        """
        before = self._newest if is_current else self._current()
        version = before.number
        changed = change(before.written)
        if changed == before.written:
            return None
        try:
            row = write(dump_config(changed), version)
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
        return row

    def _current(self) -> _Version:
        self.apply_heads(*self._journal.heads_of(HEADS))
        return self._newest

    def _read_valid(self, version: int) -> Config:
        """Return the newest valid config up to ``version``. Forged versions can leave gaps in the numbers."""
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
        """Return the signed settings of ``head``, their newest version; None if the settings of the file are
        in force.

        Damaged versions change nothing. If all signed versions are damaged, the defaults are in force.
        """
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
        """Return the config of ``row``; None if it is invalid or damaged."""
        try:
            return parse_recorded_config(row, self._journal.content(row.seq)) if row else Config()
        except (ConfigInvalid, JournalDamaged):
            return None
