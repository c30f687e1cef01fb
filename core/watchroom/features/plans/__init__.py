"""Plans: agents declare which files they intend to change, and learn whose plans overlap.

`service.Plans` declares and lists plans. Start reading at `rows`.
"""
