"""Trained models for other places: as an ONNX file, as a program of Paddle, in transformers' layout.

export.py           the job behind ``onion export``
heads.py            the graph of a task's network
onnx_file.py, paddle_program.py, eight_bits.py    what becomes of the graph
manifest.py         what an exported folder tells about itself
samples.py          the rows on which a model is compared with its run
comparison.py       a model beside the run that it was made of
sessions.py         the engines that run an exported model
exported_network.py an exported model in the place of a network, in any onion that predicts
"""
