"""The networks as graphs, for runtimes that are not onion's own: on padded batches, and without Python inside.

operations.py           what the graphs are made of, whoever carries it out
transformer.py          the graph of BERT, RoBERTa, ERNIE and ELECTRA
xlnet.py, words.py      those of the other families
encoders.py             the graph of an encoder by its config
onnx_operations.py      write an ONNX file; nothing is traced or converted
paddle_operations.py    compute with Paddle, which can save what is computed as a program
"""
