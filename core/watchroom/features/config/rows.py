"""The content of a version of the config file: the registered agents and the settings. Pure.

In an open workspace the settings of ``config.toml`` take effect. In a closed workspace they take effect once
an owner has signed them, because anyone with a shell can edit the file. The signed settings are rows at their
own path (`SETTINGS_PATH`). Agents and the language are never signed: they always come from the file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.errors import ConfigInvalid, InvalidAgentId, InvalidRole, JournalDamaged
from watchroom.features.alerts.rules import AlertSettings, dump_alerts, parse_alerts
from watchroom.features.budgets.rules import Budgets, dump_budgets, parse_budgets
from watchroom.features.checks.rules import CheckSettings, dump_checks, parse_checks
from watchroom.features.links.rules import WebSettings, dump_web, parse_web
from watchroom.features.people.rules import DECISION_TOOLS, SIGN_SETTINGS
from watchroom.features.policy.breaker import BreakerSettings, dump_breaker, parse_breaker
from watchroom.features.policy.rules import PolicyRules, dump_policy, parse_policy
from watchroom.features.trees.rules import TreeSettings, dump_trees, parse_trees
from watchroom.model import SET_BUDGET, Row, Zone
from watchroom.platform.sandbox.hosts import is_pattern
from watchroom.texts import LANGUAGES, Language

Layer: TypeAlias = Literal["top", "mid", "bottom"]
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
UnsandboxedPolicy: TypeAlias = Literal["refuse", "ask"]
"""The handling of a command on a machine without a sandbox: it is refused, or a person is asked."""
UNFENCED: Final[tuple[UnsandboxedPolicy, ...]] = get_args(UnsandboxedPolicy)
MAX_TASK_FILES: Final = 100_000
MAX_TASK_BYTES: Final = 4_000_000_000
_MAX_LIMIT: Final = 2**62
SETTINGS_ZONE: Final[Zone] = "settings"
SETTINGS_PATH: Final = "settings.toml"
SIGNED_FIELDS: Final = (
    "unfenced_commands",
    "allowed_hosts",
    "max_task_files",
    "max_task_bytes",
    "policy",
    "budgets",
    "alerts",
    "breaker",
    "confirm_decisions",
    "trees",
    "checks",
    "web",
    "change_notices",
)
"""The fields of `Config` that an owner signs in a closed workspace."""


class Agent(NamedTuple):
    """A registered agent.

    - ``supervisor``: the id of another agent; empty if it has none.
    - ``task``: the id of the task that it works on; empty if it has none.
    """

    id: str
    role: str = ""
    layer: Layer = "bottom"
    supervisor: str = ""
    task: str = ""


class Config(NamedTuple):
    """The contents of ``config.toml``."""

    agents: Mapping[str, Agent] = MappingProxyType({})
    language: Language = "en"
    unfenced_commands: UnsandboxedPolicy = "refuse"
    allowed_hosts: tuple[str, ...] = ()
    """The hosts that commands can reach: names, or ``*.`` and a name for all of its subdomains."""
    max_task_files: int = MAX_TASK_FILES
    """Maximum number of files, folders and links in a task's folder."""
    max_task_bytes: int = MAX_TASK_BYTES
    """Maximum disk usage of a task's folder in bytes."""
    policy: PolicyRules = PolicyRules()
    """Rules that allow calls of agents, require approval, or deny them."""
    budgets: Budgets = Budgets()
    """The amounts that sessions, agents, tasks and the team can use."""
    alerts: AlertSettings = AlertSettings()
    """The alerts that are sent out of the workspace when something needs people."""
    breaker: BreakerSettings = BreakerSettings()
    """The limits at which an agent that loops is paused."""
    confirm_decisions: tuple[str, ...] = ()
    """The tools of people that ask for the passphrase each time, even while the key is unlocked."""
    trees: TreeSettings = TreeSettings()
    """The settings for adding working trees."""
    web: WebSettings = WebSettings()
    """The links with which a person answers from a phone."""
    checks: tuple[CheckSettings, ...] = ()
    """The checks of agents that say that they are done."""
    change_notices: bool = True
    """Whether results notify agents of changes by others."""

    def with_agents(self, new: Iterable[Agent]) -> Config:
        """Return the config with the agents ``new`` added. They replace agents with the same ids."""
        return self._replace(agents=MappingProxyType({**self.agents, **{agent.id: agent for agent in new}}))


class RoleCollision(NamedTuple):
    """Two agents that could be confused by people or agents. ``rule``: the reason."""

    agent: Agent
    other: Agent
    rule: Literal["role_is_agent", "agent_is_role", "role_is_board"]


def board_owner(agent: Agent) -> str:
    """Return the owner's name for the board of a mid-layer ``agent`` (BOARDS-2.1): its role in the form of a
    file name, or its id if the role has no such form."""
    return _role_slug(agent) or agent.id


def find_role_collision(agent: Agent, others: Iterable[Agent]) -> RoleCollision | None:
    """Return the first collision of ``agent`` with one of ``others``, None if there is none.

    - ``role_is_agent``, ``agent_is_role``: the role of one agent is the id of another agent, whose role
      differs.
    - ``role_is_board``: the roles differ, but name the same board.
    """
    slug = _role_slug(agent)
    for other in others:
        theirs = _role_slug(other)
        if other.id == agent.id:
            continue
        if slug == other.id and theirs != slug:
            return RoleCollision(agent, other, "role_is_agent")
        if theirs and theirs == agent.id and theirs != slug:
            return RoleCollision(agent, other, "agent_is_role")
        both_have_boards = agent.layer == other.layer == "mid"
        if both_have_boards and slug and slug == theirs and _role_words(agent) != _role_words(other):
            return RoleCollision(agent, other, "role_is_board")
    return None


def _role_words(agent: Agent) -> list[str]:
    return unicodedata.normalize("NFKC", agent.role).casefold().split()


def _role_slug(agent: Agent) -> str:
    """Return the role in the form of an agent's id; empty if it cannot be converted."""
    try:
        return validation.check_agent_id("-".join(_role_words(agent)))
    except InvalidAgentId:
        return ""


def sort_top_down(agents: Mapping[str, Agent]) -> list[Agent]:
    """Sort ``agents`` (by id) so that each agent follows its supervisor. The agents of one supervisor keep
    their order."""
    below: dict[str, list[Agent]] = {}
    for agent in agents.values():
        below.setdefault(agent.supervisor if agent.supervisor in agents else "", []).append(agent)
    found: list[Agent] = []
    waiting = below.get("", [])[::-1]
    while waiting:
        agent = waiting.pop()
        found.append(agent)
        waiting.extend(reversed(below.get(agent.id, [])))
    return found


def parse_config(text: str) -> Config:
    """Parse the TOML in ``text``. Raise `ConfigInvalid` for an invalid entry."""
    try:
        table = validation.parse_toml(text)
    except ValueError as error:
        raise ConfigInvalid(problem=str(error)) from error
    language = table.get("language", "en")
    if language not in LANGUAGES:
        raise ConfigInvalid(problem=f"language = {language!r} ({', '.join(LANGUAGES)})")
    unfenced = table.get("unfenced_commands", "refuse")
    if unfenced not in UNFENCED:
        raise ConfigInvalid(problem=f"unfenced_commands = {unfenced!r} ({', '.join(UNFENCED)})")
    hosts = table.get("allowed_hosts", [])
    if not isinstance(hosts, list):
        raise ConfigInvalid(problem="allowed_hosts")
    for host in hosts:
        if not isinstance(host, str) or not is_pattern(host):
            raise ConfigInvalid(problem=f"allowed_hosts: {host!r}")
    notices = table.get("change_notices", True)
    if not isinstance(notices, bool):
        raise ConfigInvalid(problem=f"change_notices = {notices!r} (true, false)")
    agents = table.get("agents", {})
    if not isinstance(agents, dict):
        raise ConfigInvalid(problem="agents")
    alerts = parse_alerts(table.get("alerts", {}))
    settings = Config(
        language=cast("Language", language),
        unfenced_commands=cast("UnsandboxedPolicy", unfenced),
        allowed_hosts=tuple(hosts),
        max_task_files=_parse_limit(table, "max_task_files", MAX_TASK_FILES),
        max_task_bytes=_parse_limit(table, "max_task_bytes", MAX_TASK_BYTES),
        policy=parse_policy(table.get("policy", {})),
        budgets=parse_budgets(table.get("budgets", {})),
        alerts=alerts,
        breaker=parse_breaker(table.get("breaker", {})),
        confirm_decisions=_parse_decision_tools(table.get("confirm_decisions", [])),
        trees=parse_trees(table.get("trees", {})),
        web=parse_web(table.get("web", {}), alerts.targets),
        checks=parse_checks(table.get("checks", [])),
        change_notices=notices,
    )
    config = settings.with_agents(_parse_agent(name, fields) for name, fields in agents.items())
    _check_supervisors(config)
    return config


def parse_recorded_config(row: Row, text: str | None) -> Config:
    """Parse the config in ``text``, the content of ``row`` in the journal. Raise `ConfigInvalid`. Raise
    `JournalDamaged` if the text is missing or differs from the written text."""
    if row.sha256 is not None and (text is None or _is_mangled(text, row.sha256)):
        raise JournalDamaged
    return parse_config(text or "")


def _is_mangled(text: str, checksum: str) -> bool:
    """Whether invalid bytes of ``text`` were replaced. The checksum is computed only if the text could
    contain replaced bytes."""
    return "\ufffd" in text and validation.sha256(text.encode()) != checksum


def _parse_decision_tools(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(each in DECISION_TOOLS for each in given):
        raise ConfigInvalid(problem=f"confirm_decisions ({', '.join(sorted(DECISION_TOOLS))})")
    return tuple(given)


def _parse_limit(table: Mapping[str, object], name: str, default: int) -> int:
    found = table.get(name, default)
    # True is an int.
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found <= _MAX_LIMIT:
        raise ConfigInvalid(problem=f"{name} = {found!r} (1 … {_MAX_LIMIT})")
    return found


def _parse_agent(name: str, fields: object) -> Agent:
    try:
        validation.check_agent_id(name)
    except InvalidAgentId as error:
        raise ConfigInvalid(problem=error.message()) from error
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ConfigInvalid(problem=f"agents.{name}")
    unknown = set(fields) - {"role", "layer", "supervisor", "task"}
    if unknown:
        raise ConfigInvalid(problem=f"agents.{name}: {', '.join(sorted(unknown))}")
    layer = fields.get("layer", "bottom")
    if layer not in LAYERS:
        raise ConfigInvalid(problem=f"agents.{name}.layer = {layer!r} ({', '.join(LAYERS)})")
    role, supervisor, task = (fields.get(name, "") for name in ("role", "supervisor", "task"))
    return Agent(name, role, cast("Layer", layer), supervisor, task)


def add_agents(config: Config, agents: Iterable[Agent]) -> Config:
    """Return ``config`` with ``agents`` added. They replace agents with the same ids.

    Raise `InvalidAgentId`, `InvalidRole`. Raise `ConfigInvalid` if a supervisor is unknown, or if supervisors
    form a cycle.
    """
    new = list(agents)
    for agent in new:
        validation.check_agent_id(agent.id)
    changed = config.with_agents(new)
    _check_supervisors(changed)
    for agent in new:
        check_role(agent, changed)
    return changed


def check_role(agent: Agent, config: Config) -> None:
    """Raise `InvalidRole` if ``agent`` could be confused with another agent of ``config``."""
    found = find_role_collision(agent, config.agents.values())
    if found is not None:
        given = validation.escape_unstorable(agent.role, 100)
        raise InvalidRole(given=given, agent=agent.id or "-", other=found.other.id, rule=found.rule)


def _check_supervisors(config: Config) -> None:
    checked: set[str] = set()
    for agent in config.agents.values():
        chain: dict[str, str] = {}
        at = agent.id
        while at and at not in checked:
            chain[at] = supervisor = config.agents[at].supervisor
            if supervisor and supervisor not in config.agents:
                raise ConfigInvalid(problem=f"agents.{at}.supervisor = {supervisor!r}")
            if supervisor in chain:
                raise ConfigInvalid(problem=" → ".join([*chain, supervisor]))
            at = supervisor
        checked |= chain.keys()


def dump_config(config: Config) -> str:
    """Return ``config`` as TOML, without defaults: the reverse of `parse_config`."""
    import tomli_w

    agents = {
        agent.id: {name: value for name, value in agent._asdict().items() if name != "id" and value}
        for agent in config.agents.values()
    }
    return tomli_w.dumps({"language": config.language, **_settings_as_table(config), "agents": agents})


def dump_settings(config: Config) -> str:
    """Return the `SIGNED_FIELDS` of ``config`` as TOML, without defaults: the reverse of `parse_settings`."""
    import tomli_w

    return tomli_w.dumps(_settings_as_table(config))


def _settings_as_table(config: Config) -> dict[str, object]:
    settings: dict[str, object] = {}
    for name in (
        "unfenced_commands",
        "allowed_hosts",
        "max_task_files",
        "max_task_bytes",
        "confirm_decisions",
        "change_notices",
    ):
        value = getattr(config, name)
        if value != getattr(Config(), name):
            settings[name] = list(value) if isinstance(value, tuple) else value
    tables: dict[str, Mapping[str, object]] = {
        "policy": dump_policy(config.policy),
        "budgets": dump_budgets(config.budgets),
        "alerts": dump_alerts(config.alerts),
        "breaker": dump_breaker(config.breaker),
        "trees": dump_trees(config.trees),
        "web": dump_web(config.web),
    }
    if config.checks:
        settings["checks"] = dump_checks(config.checks)
    return {**settings, **{name: table for name, table in tables.items() if table}}


def parse_settings(text: str) -> Config:
    """Parse the content ``text`` of a version of the signed settings. Raise `ConfigInvalid`, also for an
    entry about agents."""
    found = parse_config(text)
    if found.agents:
        raise ConfigInvalid(problem="agents")
    return found


def apply_settings_row(settings: Config | None, row: Row, content: str | None) -> Config | None:
    """Return the signed settings after ``row``; None if the settings of the file take effect.

    - ``settings``: the signed settings before ``row``, None if there were none.
    - ``row``: a valid version of the signed settings. A row of `SET_BUDGET` changes only the budgets, even if
      its content has more.
    - ``content``: the content of ``row``.

    Raise `ConfigInvalid`.
    """
    if row.deleted:
        return None if row.tool == SIGN_SETTINGS else settings
    found = parse_settings(content or "")
    if row.tool == SIGN_SETTINGS:
        return found
    if row.tool != SET_BUDGET or settings is None:
        return settings
    return settings._replace(budgets=found.budgets)


def with_settings(config: Config, settings: Config | None) -> Config:
    """Return ``config`` with the `SIGNED_FIELDS` of ``settings``; unchanged if ``settings`` is None."""
    if settings is None:
        return config
    return config._replace(**{name: getattr(settings, name) for name in SIGNED_FIELDS})


def find_unsigned(config: Config, settings: Config | None) -> tuple[str, ...]:
    """Return the names of the fields in which ``config``, the file, differs from the signed ``settings``;
    empty if there are no signed settings."""
    if settings is None:
        return ()
    return tuple(name for name in SIGNED_FIELDS if getattr(config, name) != getattr(settings, name))
