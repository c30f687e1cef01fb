"""Commands about processes, machines and databases."""
