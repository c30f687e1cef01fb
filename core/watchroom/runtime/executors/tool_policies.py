"""Whether a tool may be called, by the policies of the agent, of the configuration and of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom.rules.policy import PolicyDecision, Verdict
from watchroom.rules.requests import Policy, parse_arguments, stricter_policy
from watchroom.runtime.agent import AgentProgram, AgentTool, Policies, RuntimeConfig
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.threads import run_in_thread

POLICIES: Final[Mapping[Verdict, Policy]] = {"allow": "always", "ask": "ask", "deny": "never"}
"""What the verdicts of the workspace's policy come to."""


class ToolPolicies:
    """The policies of ``agent`` and of ``config`` together."""

    def __init__(self, agent: AgentProgram, config: RuntimeConfig) -> None:
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

    async def decide(self, call: ToolCall) -> PolicyDecision:
        """What the workspace's policy says of ``call``."""
        name, arguments = call.function.name, parse_arguments(call.function.arguments)
        tool = self._agent.tools.get(name)
        if tool is None:
            return PolicyDecision()
        if isinstance(tool, AgentTool) and tool.policy is not None:
            return await run_in_thread(tool.policy, arguments)
        if self._config.decide_policy is not None:
            return await run_in_thread(self._config.decide_policy, name, arguments)
        return PolicyDecision()
