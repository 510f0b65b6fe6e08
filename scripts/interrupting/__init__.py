"""What ``make interrupt`` is made of: where Ctrl-C comes, and what has to be true afterwards.

disk        the file layer at whose operations it comes, slowly, so that a thread is still writing then
ctrl_c      Ctrl-C as Python answers it, for as long as a run goes on
lines       the lines of the code that saves, at which it comes too
attempt     a run interrupted, started again in the same process, and held against one that was not
"""
