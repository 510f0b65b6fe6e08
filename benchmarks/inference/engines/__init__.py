"""Engines: each has ``LIBRARIES`` and ``ways(job)``, name -> a function from texts to numbers, float32 [texts, ...].

``classify`` gives probabilities, ``embed`` the mean of the token vectors. ``... in order`` takes texts as they come, 64
at a time; without it similar lengths go together. ``tokenise`` gives nothing that is looked at.
"""
