"""What ``make kill`` is made of: where to die, how to die there, what has to be true afterwards.

points      a moment of a run: an event and its number, ``rename unsynced 3``
reaper      counts the events of a process, and ends it at its point
witness     the rings that tell the reaper of passes and batches
files       the file layer that tells it of bytes, syncs, renames and removals
child       a function in a process of its own: forked, listened to, killed if it is late
run         a whole run of an onion in a child
differences what two folders of runs differ in
attempt     a run killed, started again, and held against the one that nobody killed
schedule    which onion dies how
pool        several attempts at the same time
report      what is printed
"""
