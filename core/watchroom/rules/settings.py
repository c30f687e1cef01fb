"""Settings apart from the config file: in a closed workspace they hold as an owner signed them. Pure.

Whoever has a shell can edit ``config.toml``. So what decides about agents is kept at a path of its own, whose
versions are decisions of people; what the file says otherwise waits until an owner signs it. Who is
registered, and the language, stay in the file.
"""

from __future__ import annotations

from typing import Final

from watchroom.errors import ConfigInvalid
from watchroom.model import SET_BUDGET, Row, Zone
from watchroom.rules.config import Config, parse_config, render_settings
from watchroom.rules.effects import SIGN_SETTINGS

ZONE: Final[Zone] = "settings"
PATH: Final = "settings.toml"
SIGNED_FIELDS: Final = (
    "unfenced_commands",
    "allowed_hosts",
    "max_task_files",
    "max_task_bytes",
    "policy",
    "budgets",
    "alerts",
    "breaker",
)
"""The fields of `Config` that are settings of this kind."""


def apply_settings_row(settings: Config | None, row: Row, content: str | None) -> Config | None:
    """The settings after ``row`` of their path, which counts and has the ``content``, where ``settings`` held
    before; None: the file's hold. A budget that somebody set changes the budgets alone, whatever else its row
    says. Raises `ConfigInvalid`."""
    if row.deleted:
        return None if row.tool == SIGN_SETTINGS else settings
    found = parse_settings(content or "")
    if row.tool == SIGN_SETTINGS:
        return found
    if row.tool != SET_BUDGET or settings is None:
        return settings
    return settings._replace(budgets=found.budgets)


def parse_settings(text: str) -> Config:
    """The settings that the content ``text`` of their path says, and no agents. Raises `ConfigInvalid`."""
    found = parse_config(text)
    if found.agents:
        raise ConfigInvalid(problem="agents")
    return found


def dump_settings(config: Config) -> str:
    """The settings of ``config`` as the content of their path."""
    return render_settings(config)


def with_settings(config: Config, settings: Config | None) -> Config:
    """``config`` with ``settings`` in place of its own; as it is where there are none."""
    if settings is None:
        return config
    return config._replace(**{name: getattr(settings, name) for name in SIGNED_FIELDS})


def find_unsigned(config: Config, settings: Config | None) -> tuple[str, ...]:
    """The names of the fields in which ``config``, the file, says something else than the ``settings`` that
    hold; none where the file's own hold."""
    if settings is None:
        return ()
    return tuple(name for name in SIGNED_FIELDS if getattr(config, name) != getattr(settings, name))
