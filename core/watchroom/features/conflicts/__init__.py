"""Conflicts: refused writes, and external edits of shared files and boards, until somebody settles them.

`Conflicts` in `service.py` resolves and dismisses conflicts and reverts external edits. `tools.py` has these
operations as tools for people. `Notifications` finds settled conflicts and new handoffs that an agent has not
seen. `reads.py` makes the diff for a refused writer. The rules for opening and closing a conflict are in
`watchroom.kernel.rules.conflicts`, because the checkout also needs them. Start there with `ConflictTracker`.
"""
