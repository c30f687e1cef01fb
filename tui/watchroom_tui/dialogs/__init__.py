"""Modal screens above the current screen: questions, inputs and details."""
