"""A day of learning from a stream, as fast as it goes: what scripts/soak.py is made of.

trainer.py      the process that learns, with all that an online run can have; or the same network in a bare Paddle loop
producer.py     the process that puts samples in
samples.py      what is sampled of a process and its files
trend.py        a line through the samples, and by how much it rises in a day
"""
