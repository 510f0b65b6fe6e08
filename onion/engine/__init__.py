"""The composing engine. It imports no Paddle, and nothing of the rest of onion but errors and messages.

rings.py                       how hooks become rings: the composing core
item.py, own_state.py          the contract of an item; what a run has of an item for itself
runner.py, state.py            the loop, and what flows through it
item_holder.py, item_tree.py   items that hold items; who is where, and runners made from others
placement.py                   what an item asks of its place
conditional.py, periodic.py    bases of items that act for some batches, or every so often
identity.py                    what a run is made of, to compare it with a checkpoint's
drawing.py, timing.py          the runner as text or picture; the time of each ring
backward.py                    whether a network is differentiated once
"""
