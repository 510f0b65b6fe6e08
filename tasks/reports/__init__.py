"""What an evaluation tells beyond its figures: each class, each confusion, each error.

report.py      the parts of a report, and the folder they are written to
classes.py     precision, recall, F1 and support of each class, and their averages
matrix.py      a table of counts, as a picture
scatter.py     numbers against numbers, as a picture
errors.py      the rows that were predicted wrongly

one_label.py, several_labels.py, chunks.py, numbers.py, answers.py: the reports, each of a kind of task
"""
