"""Whether a tool may be called, where the agent and the configuration both have a say."""

from __future__ import annotations

from watchroom.rules.requests import Policy, stricter_policy
from watchroom.runtime.agent import Agent, AgentTool, RuntimeConfig, WithPolicies


class ToolPolicies:
    """The policies of ``agent`` and of ``config`` together."""

    def __init__(self, agent: Agent, config: RuntimeConfig) -> None:
        self._agent = agent
        self._config = config
        # Asked once: a protocol that is checked as the program runs is slow to check.
        self._with_policies = agent if isinstance(agent, WithPolicies) else config

    def of(self, tool: str) -> Policy:
        """The stricter one of the two, and of what holds for the tool that this one writes as."""
        policy = stricter_policy(self._config.policies.of(tool), self._with_policies.policies.of(tool))
        found = self._agent.tools.get(tool)
        same = found.writes_as if isinstance(found, AgentTool) else ""
        return stricter_policy(policy, self.of(same)) if same else policy
