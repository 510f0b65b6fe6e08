"""Runs killed anywhere by SIGKILL and resumed: ``make crash-test``.

__main__.py      which onion dies how, several at the same time, and the report
attempt.py       a run killed, resumed, and compared with the uninterrupted one
points.py        where a run can be killed, and what kills it there
differences.py   what two folders of runs differ in
"""
