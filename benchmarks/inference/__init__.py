"""Raw texts in, numbers out, beside transformers, ONNX Runtime and others.

__main__.py    the two models' peers, figures and goals: python -m benchmarks.inference
models.py      the two models, as folders that all sides read
onnx_copy.py   ONNX Runtime without AVX-512
work.py        batches and clocks that all sides share, and a process with one engine
*_engine.py    what a user of that engine would write: ``LIBRARIES``, and functions that take a job and return name -> a
               function from texts to float32 [texts, ...]: ``classify`` gives probabilities, ``embed`` the mean of the
               token vectors; ``... in order`` takes texts as they come, 64 at a time, without it similar lengths go
               together; what ``tokenise`` gives is not looked at
"""
