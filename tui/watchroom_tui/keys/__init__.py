"""Keys: the registry of actions, and custom keys of the person."""
