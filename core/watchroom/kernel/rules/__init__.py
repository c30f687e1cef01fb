"""Pure rules about rows: what can be appended, what fields of a detail mean, what a conflict is."""
