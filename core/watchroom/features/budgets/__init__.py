"""Budgets: the amounts that a session, an agent, a task or the team can use, and the measured usage.

`rows` has the vocabulary of usage: `UsageTotal`, and how the detail of a step records it. `rules` has the
amounts (`Budgets`), their use (`BudgetUse`), and the request to people when a budget is reached.
`BudgetControl` in `service` holds calls, asks people and changes budgets. `view` has the projections for the
dashboard, and `reads` sums the usage of the whole journal. Start reading at `BudgetControl.hold_call`.
"""
