"""Tool calls: they are validated, checked against the workspace's policy, run, or refused with a row.

`Toolbox` in `toolbox` carries out the calls of one actor. `ToolRegistry` in `tool_registry` finds the actor's
tools, and `CallPolicy` in `call_policy` applies the policy. `proposals` returns what a call would write, and
binds an approval to exactly that. `agent_tools` gives a toolbox's tools to agents of the runtime, and `reads`
gives requests to front ends. Start reading in `toolbox`.
"""
