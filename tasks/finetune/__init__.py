"""Fine-tuning: from settings and files to checkpoints, metrics and predictions.

fine_tune.py        fine_tune and the job of ``onion train``
settings.py, config_file.py, presets.py    what a training is asked for: flags, files, published settings
initialization.py   the weights that a training starts from
recipes.py          the onions that train, evaluate and predict
optimization.py, clipping.py    AdamW with warm-up and decay, layer-wise rates, gradient clipping
run_folder.py       the output folder, and its record of the settings
predictor.py, inference.py      prediction in Python; the jobs of ``onion evaluate`` and ``onion predict``
"""
