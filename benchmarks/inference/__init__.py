"""Raw texts in, numbers out, beside transformers, ONNX Runtime and others.

Each *_engine.py is what a user of that engine would write: ``LIBRARIES``, and functions that take a job and return
name -> a function from texts to float32 [texts, ...]: ``classify`` gives probabilities, ``embed`` the mean of the token
vectors; ``... in order`` takes texts as they come, 64 at a time, without it similar lengths go together; what
``tokenise`` gives is not looked at.
"""
