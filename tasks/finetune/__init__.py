"""Fine-tuning: from settings and files to checkpoints, metrics and predictions.

fine_tune.py        fine_tune and the job of ``onion train``
settings.py, config_file.py, presets.py    settings from flags, files and published examples
initialization.py   the initial weights
recipes.py          the runners that train, evaluate and predict
optimization.py     AdamW with warm-up and decay, layer-wise rates
clipping.py         gradient clipping that keeps the norm
loggers.py          what else a training writes its figures to
run_folder.py       the output folder, and its record of the settings
predictor.py, inference.py      prediction in Python; the jobs of ``onion evaluate`` and ``onion predict``
"""
