"""Conflicts: refused writes and external edits of shared files and boards, until somebody settles them.

`Conflicts` in `service.py` resolves and dismisses conflicts and reverts external edits. `tools.py` offers
that to people. `Notifications` finds the settled conflicts and new handoffs that an agent has not seen.
`reads.py` makes the diff that a refused writer receives. Which rows open and close a conflict is in
`watchroom.kernel.rules.conflicts`, because the checkout needs it too. Start there with `ConflictTracker`.
"""
