"""Checks: when an agent says that it is done, a person's command tests its work.

`service.Checks` runs the checks of the settings, records how they end, and sends a failure back to the agent.
Start reading at `rules`, then `rows`.
"""
