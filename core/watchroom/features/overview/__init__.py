"""The dashboard's model: all rows folded into what a screen shows, at any moment.

`fold.Fold` applies rows in order and returns a `model.Model`, which is immutable. Each part of the model
comes from a projection: those of features are in their ``view.py``, those about several features are here.
`needs` decides what waits for a person, `processes` and `presence` which work no process continues, and
`timeline` when something happened. `snapshots` saves the state of a fold, so that a reader does not begin at
the first row. `reads` returns details that the model leaves out. Start reading at `Fold`.
"""
