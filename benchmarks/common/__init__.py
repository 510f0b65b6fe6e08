"""What measurements that run for hours have in common: pieces of work, each in a process of its own, each kept.

kept.py        results as files, under names that say what they stand for
processes.py   run a command, and tell what it last said if it failed
driver.py      one piece after the other
machine.py     where and when it ran
tables.py      lines of a page
"""
