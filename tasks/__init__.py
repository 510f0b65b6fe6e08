"""Tasks: how files become features, heads over encoders, metrics, predictions; imported as ``onion.tasks``.

task.py                the contract of a task
classification.py ...  the tasks, a file each; catalogue.py lists them
rows.py, texts.py      rows of files; what tasks over texts share
batches.py, probabilities.py    padded batches; logits as probabilities
places.py              values of a JSON file, which know where they stand
heads.py, labels.py    linear layers over an encoder; the labels of a task
features/              examples as columns: cached, streamed
metrics/               figures over a pass
spans/, tags/          the parts of reading.py: answers that are spans; of tagging.py: a tag for every word
onions.py, collector.py    the ready onions and their items
optimization.py, clipping.py    their optimizer
masker.py              the items that mask words
multi_head.py          one encoder, a network a task
distillation.py        a student's losses beside its teacher
adversarial.py         GAN-BERT's two networks
jobs/                  what ``onion train``, ``evaluate`` and ``predict`` do
embedding.py, embedding_files.py, npy.py    sentence vectors
"""
