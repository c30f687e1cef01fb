"""Whether a tool may be called, by the policies of the agent and of the configuration."""

from __future__ import annotations

from watchroom.rules.requests import Policy, stricter_policy
from watchroom.runtime.agent import Agent, AgentTool, Policies, RuntimeConfig


class ToolPolicies:
    """The policies of ``agent`` and of ``config`` together."""

    def __init__(self, agent: Agent, config: RuntimeConfig) -> None:
        self._agent = agent
        self._config = config

    def of(self, tool: str) -> Policy:
        """The policy for ``tool``: the stricter one of the two, and of that for the tool that it writes
        as."""
        own: Policies = getattr(self._agent, "policies", None) or self._config.policies
        policy = stricter_policy(self._config.policies.of(tool), own.of(tool))
        found = self._agent.tools.get(tool)
        same = found.writes_as if isinstance(found, AgentTool) else ""
        return stricter_policy(policy, self.of(same)) if same else policy
