"""What the command ``mutation`` is made of."""
