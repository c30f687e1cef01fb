"""What the config file says: who is registered, with role, layer and supervisor, and the settings. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.errors import ConfigInvalid, InvalidAgentId, InvalidRole, JournalDamaged
from watchroom.model import Row
from watchroom.rules.alerts import AlertSettings, dump_alerts, parse_alerts
from watchroom.rules.breaker import BreakerSettings, breaker_as_table, parse_breaker
from watchroom.rules.budgets import Budgets, dump_budgets, parse_budgets
from watchroom.rules.effects import DECISION_TOOLS
from watchroom.rules.policy import PolicyRules, parse_policy, policy_as_table
from watchroom.sandbox.hosts import is_pattern
from watchroom.texts import LANGUAGES, Language

Layer: TypeAlias = Literal["top", "mid", "bottom"]
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
UnsandboxedPolicy: TypeAlias = Literal["refuse", "ask"]
"""What becomes of a command on a machine without a sandbox: it is refused, or a person is asked."""
UNFENCED: Final[tuple[UnsandboxedPolicy, ...]] = get_args(UnsandboxedPolicy)
MAX_TASK_FILES: Final = 100_000
MAX_TASK_BYTES: Final = 4_000_000_000
_LARGEST_BOUND: Final = 2**62


class Agent(NamedTuple):
    """A registered agent. ``supervisor`` is another agent's id, ``task`` the id of the task that it works on;
    both may be empty."""

    id: str
    role: str = ""
    layer: Layer = "bottom"
    supervisor: str = ""
    task: str = ""


class Config(NamedTuple):
    """What ``config.toml`` says."""

    agents: Mapping[str, Agent] = MappingProxyType({})
    language: Language = "en"
    unfenced_commands: UnsandboxedPolicy = "refuse"
    allowed_hosts: tuple[str, ...] = ()
    """The hosts that commands may reach: names, or ``*.`` and a name for all beneath it."""
    max_task_files: int = MAX_TASK_FILES
    """So many files, folders and links a task's folder may hold."""
    max_task_bytes: int = MAX_TASK_BYTES
    """So many bytes they may take on disk."""
    policy: PolicyRules = PolicyRules()
    """Which calls of agents are allowed, asked about or denied."""
    budgets: Budgets = Budgets()
    """How much sessions, agents, tasks and the team may use."""
    alerts: AlertSettings = AlertSettings()
    """What is sent out of the workspace when something needs people."""
    breaker: BreakerSettings = BreakerSettings()
    """When an agent that goes in circles is paused."""
    confirm_decisions: tuple[str, ...] = ()
    """The tools of people that need the passphrase each time, although the key is unlocked."""

    def with_agents(self, new: Iterable[Agent]) -> Config:
        """The config with the ``new`` agents, in place of those with the same ids."""
        return self._replace(agents=MappingProxyType({**self.agents, **{agent.id: agent for agent in new}}))


class RoleCollision(NamedTuple):
    """Two agents of which one would pass for the other. ``rule`` names how."""

    agent: Agent
    other: Agent
    rule: Literal["role_is_agent", "agent_is_role", "role_is_board"]


def board_owner(agent: Agent) -> str:
    """What the board of a mid-layer ``agent`` is called after: its role as a file's name can say it, else its
    id (BOARDS-2.1)."""
    return _role_slug(agent) or agent.id


def find_role_collision(agent: Agent, others: Iterable[Agent]) -> RoleCollision | None:
    """The first of ``others`` whom ``agent`` could be taken for, None if there is none: a role that is the id
    of an agent with another role, or that names the board of another role."""
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
    """The role as an agent's id could say it, empty where none can."""
    try:
        return validation.check_agent_id("-".join(_role_words(agent)))
    except InvalidAgentId:
        return ""


def sort_top_down(agents: Mapping[str, Agent]) -> list[Agent]:
    """``agents`` (by id) so that each comes after its supervisor, those beneath one together, in the order
    given."""
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
    """The config that ``text``, which is TOML, says. Raises `ConfigInvalid`, which names the entry that is
    wrong."""
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
    agents = table.get("agents", {})
    if not isinstance(agents, dict):
        raise ConfigInvalid(problem="agents")
    settings = Config(
        language=cast("Language", language),
        unfenced_commands=cast("UnsandboxedPolicy", unfenced),
        allowed_hosts=tuple(hosts),
        max_task_files=_bound(table, "max_task_files", MAX_TASK_FILES),
        max_task_bytes=_bound(table, "max_task_bytes", MAX_TASK_BYTES),
        policy=parse_policy(table.get("policy", {})),
        budgets=parse_budgets(table.get("budgets", {})),
        alerts=parse_alerts(table.get("alerts", {})),
        breaker=parse_breaker(table.get("breaker", {})),
        confirm_decisions=_decision_tools(table.get("confirm_decisions", [])),
    )
    config = settings.with_agents(_agent(name, fields) for name, fields in agents.items())
    _check_supervisors(config)
    return config


def parse_recorded_config(row: Row, text: str | None) -> Config:
    """The config that ``row`` made, which carries ``text`` as the journal gives it. Raises `ConfigInvalid`,
    and `JournalDamaged` where the text is lost or was not read as it was written."""
    if row.sha256 is not None and (text is None or _is_mangled(text, row.sha256)):
        raise JournalDamaged
    return parse_config(text or "")


def _is_mangled(text: str, checksum: str) -> bool:
    """Whether bytes were replaced that are no text. The checksum is asked for only where that may be."""
    return "\ufffd" in text and validation.sha256(text.encode()) != checksum


def _decision_tools(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(each in DECISION_TOOLS for each in given):
        raise ConfigInvalid(problem=f"confirm_decisions ({', '.join(sorted(DECISION_TOOLS))})")
    return tuple(given)


def _bound(table: Mapping[str, object], name: str, default: int) -> int:
    found = table.get(name, default)
    # True is an int, too.
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found <= _LARGEST_BOUND:
        raise ConfigInvalid(problem=f"{name} = {found!r} (1 … {_LARGEST_BOUND})")
    return found


def _agent(name: str, fields: object) -> Agent:
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
    """``config`` with ``agents`` registered, in place of those with the same ids. Raises `InvalidAgentId`,
    `InvalidRole`, and `ConfigInvalid` where they do not fit together."""
    new = list(agents)
    for agent in new:
        validation.check_agent_id(agent.id)
    changed = config.with_agents(new)
    _check_supervisors(changed)
    for agent in new:
        check_role(agent, changed)
    return changed


def check_role(agent: Agent, config: Config) -> None:
    """Raises `InvalidRole` where ``agent`` could be taken for another one of ``config``, or another for
    it."""
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


def render_config(config: Config) -> str:
    """``config`` as TOML, fields that have their default left out."""
    import tomli_w

    agents = {
        agent.id: {name: value for name, value in agent._asdict().items() if name != "id" and value}
        for agent in config.agents.values()
    }
    return tomli_w.dumps({"language": config.language, **_settings_as_table(config), "agents": agents})


def render_settings(config: Config) -> str:
    """What ``config`` says of all but the language and the agents, as TOML; fields that have their default
    left out."""
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
    ):
        value = getattr(config, name)
        if value != getattr(Config(), name):
            settings[name] = list(value) if isinstance(value, tuple) else value
    tables: dict[str, Mapping[str, object]] = {
        "policy": policy_as_table(config.policy),
        "budgets": dump_budgets(config.budgets),
        "alerts": dump_alerts(config.alerts),
        "breaker": breaker_as_table(config.breaker),
    }
    return {**settings, **{name: table for name, table in tables.items() if table}}
