"""Fine-tuning on real data by onion and by Hugging Face, in one table: ``make results``, docs/results.md.

__main__.py      which data sets, encoders and settings; a row, a side and a seed are a run, in its own process
page.py          docs/results.md
onion_side.py    onion's side, through its public commands
hugging_face.py  the other side: transformers' Trainer on torch; imports nothing of onion
files.py         the formats of the data
kept/            the results
"""
