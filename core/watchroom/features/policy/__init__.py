"""Policy: decides whether calls of agents are allowed, need approval or are denied, and pauses agents that
loop.

`rules` has the rules of the table ``policy``, and decides on a single call. For rules about commands,
`plain_command` parses the commands that an ``allow`` rule can match, and `shell_reader` finds everything that
a shell text could run. `program_runners` covers programs that run other programs. `WorkspacePolicy` in
`service` applies the rules of a workspace. `breaker` detects agents that loop, and `AgentBreaker` in
`service` pauses them. `grants` decides which calls a person's grant covers, and `Grants` in `service` records
grants and their uses. `shown_commands` quotes commands that people can paste into a shell. Start reading at
`rules.decide`.
"""
