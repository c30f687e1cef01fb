"""Modal screens: questions, inputs and details over a screen."""
