"""The parts of `reliability.fuzz`: its loop, how inputs are made, and one module of targets a subject."""
