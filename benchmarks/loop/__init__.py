"""What a loop costs a batch beside the same loop written by hand: onion's, and its peers'.

work.py       the work that is the same for all, the clock, and a process in which engines take turns
*_engines.py  each engine and each bare loop, a function, written as its user would write it
__main__.py   peers, figures and goals: python -m benchmarks.loop
"""
