"""The parts of `reliability.fuzz`: its loop, the generation of inputs, and a module of targets per
subject."""
