"""Reverts undo the work of agents since a given moment. They are planned first, and then applied atomically.

`rules.plan_path` computes the text of a path without some of its versions. `planning.RevertPlanner` selects
versions and plans each path; `withdrawals` and `documents` plan items without versions of text, such as
handoffs and realtime documents. `service.Reverts` commits a plan, finishes interrupted reverts, and notifies
agents. A revert is itself work that can be reverted. Start reading at `Reverts.apply`.
"""
