"""Commands about the people and the settings of a workspace."""
