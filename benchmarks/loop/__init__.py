"""What a loop costs a batch beside the same loop written by hand: onion's, and its peers'.

work.py       the work that is the same for all, and the clock
engines/      one file for each engine and for each bare loop
side.py       a process of one environment, in which they take turns
figures.py    what is told of the rounds
__main__.py   python -m benchmarks.loop
"""
