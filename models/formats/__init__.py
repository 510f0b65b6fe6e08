"""The file formats of encoders; :mod:`onion.models.weights` chooses by the content of a folder.

config_readers.py               the formats of a config
name_mapping.py, layouts.py     parameter names of other systems -> onion's and back; layouts
safetensors_file.py, torch_file.py, paddle_file.py, ernie_static.py    one format each
safe_pickle.py, pickle_containers.py, protobuf.py      pickles, read without executing them; protocol buffers
paths.py                        whether a file exists; errors that name the file
"""
