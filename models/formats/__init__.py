"""The files of every system that encoders come from; :mod:`onion.models.weights` chooses by what a folder holds.

config_readers.py               the forms of a config
name_mapping.py, layouts.py     parameter names of other systems -> ours and back; the layouts that are written
safetensors_file.py, torch_file.py, paddle_file.py, ernie_static.py    one format each
safe_pickle.py, pickle_containers.py           pickles read without running anything that they name
paths.py                        whether a file exists
"""
