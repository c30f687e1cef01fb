"""Commands over the journal: show who did what, and revert it."""
