"""The files of every system that encoders come from; :mod:`onion.models.weights` chooses by what a folder holds.

config_readers.py              the four forms of a config
naming.py, layouts.py          foreign parameter names -> ours and back; the layouts that are written
tensors.py                     safetensors files
paths.py                       whether a file is there
pickles.py                     pickles read without running anything they name
containers.py                  those of lists, dicts and sets of words, Python 2's too
torch_file.py, paddle_file.py  pytorch_model.bin, model_state.pdparams
static_file.py                 the tensor files of Paddle 1.x
"""
