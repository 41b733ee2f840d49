"""What tools/bench measures: one module for each theme, each giving its rows.

A row has a name, the point of the target it belongs to, and what makes its measures: ours, its floor, and
whatever else is worth standing beside them. `rows` runs them, `report` shows them.
"""
