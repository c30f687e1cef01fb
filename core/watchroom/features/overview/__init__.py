"""The dashboard's model: all rows folded into the state that a screen shows, for any moment.

`fold.Fold` applies rows in order and returns a `model.Model`, which is immutable. Each part of the model
comes from a projection. Projections of one feature are in its ``view.py``, and projections of several
features are here. `needs` finds the items that wait for a person, `processes` and `presence` find work that
no process continues, and `timeline` has the times of events. `snapshots` saves the state of a fold, so that a
reader need not begin at the first row. `reads` returns details that are not in the model. Start reading at
`Fold`.
"""
