"""The keys: the registry of actions, and the keys that a person chose."""
