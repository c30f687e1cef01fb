"""How a tool is declared: its parameters, its result, its annotations, and its definition for models."""
