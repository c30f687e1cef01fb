"""Tool calls: validates them, checks them against the workspace's policy, and runs them or refuses them with
a row.

`Toolbox` in `toolbox` carries out the calls of one actor. `ToolRegistry` in `tool_registry` finds the actor's
tools, and `CallPolicy` in `call_policy` applies the policy. `proposals` computes the text that a call would
write, and binds an approval to exactly that text. `agent_tools` offers a toolbox's tools to agents of the
runtime, and `reads` returns requests for front ends. Start reading in `toolbox`.
"""
