"""Tasks: from data files to features, networks, metrics and predictions; imported as ``onion.tasks``.

task.py, registry.py     the contract of a task; the tasks by name
classification.py, regression.py, matching.py, multilabel.py
token_classification/    a tag for every word: windows, heads, CRF
question_answering/      spans of a context: questions, windows, answers
masked_lm/               masked words
data/                    rows of files, texts, labels, cached features
batches.py, probabilities.py    arrays that data and networks share
decoding.py              what outputs say, in numpy: for the networks, and where Paddle is not installed
networks/                the networks of tasks, several heads, distillation, GAN-BERT; they read no files
collector.py             items that decode outputs and collect them
metrics/                 metrics over a pass
finetune/                settings, recipes, runs and predictions: ``onion train``, ``evaluate``, ``predict``
pretraining/             corpora, the tasks of BERT and ERNIE, their training: ``onion corpus``, ``onion pretrain``
teaching/                what trainings by a teacher share: the teacher, settings, both models side by side
students/                small students of a trained model: ``onion distill``
compression/             smaller models of a trained one: ``onion compress``
tuning/                  searches for settings and folds: ``onion tune``, ``lr-find``, ``cross-validate``
reports/                 figures of each class, confusions, errors: ``onion evaluate --report``
publishing/              a trained model for others: ``onion push``
export/                  models for ONNX Runtime, Paddle Inference, transformers: ``onion export``
loading.py               a trained model or an encoder as a function of texts: ``onion.load``
embedding/               sentence vectors: ``onion embed``
"""
