"""A trained model for others, in a folder that ``onion push`` uploads.

transformers_names.py    transformers' classes and names for the heads of tasks
weights.py               a task's network in transformers' layout: written and read
model_card.py            README.md
model_folder.py          the whole folder
push.py                  its upload
"""
