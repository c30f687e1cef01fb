"""Policy: which calls of agents are allowed, asked about or denied, and when an agent that goes in circles is
paused.

`rules` has the rules of the table ``policy`` and decides about one call. For rules about commands,
`plain_command` parses the commands that an ``allow`` rule can match, and `shell_reader` finds everything that
a shell text could run, with `program_runners` for programs that run others. `WorkspacePolicy` in `service`
applies the rules of a workspace. `breaker` detects agents that go in circles, and `AgentBreaker` in `service`
pauses them. `shown_commands` quotes commands that people can paste into a shell. Start reading at
`rules.decide`.
"""
