"""Makes a folder of ``models/embedded`` from a pretrained encoder: ``make embedded-model``.

halved.py       the same folder with weights of 16 bits
comparison.py   what the fewer bits change
card.py         README.md: what it was trained on, its licence, its figures
"""
