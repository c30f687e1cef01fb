"""Reverts: undoing what agents did since a moment, planned first, then applied completely or not at all.

`rules.plan_path` decides what becomes of a path without some of its versions. `planning.RevertPlanner`
selects versions and plans each path; `withdrawals` and `documents` plan things without versions of text, such
as handoffs and realtime documents. `service.Reverts` commits a plan, finishes interrupted reverts, and
notifies agents. A revert is itself work that can be reverted. Start reading at `Reverts.apply`.
"""
