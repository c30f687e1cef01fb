"""Commands over the journal: show the changes of agents and people, and revert changes."""
