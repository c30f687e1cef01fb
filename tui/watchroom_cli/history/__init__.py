"""Commands over the journal: what was done, by whom, and taking it back."""
