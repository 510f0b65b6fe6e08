"""Pretraining: corpora of tokens, and the tasks that an encoder learns from them.

corpus/      text becomes mapped shards, with flags of words, phrases, entities and sentences
tasks/       the pretraining tasks, one a file; task.py is their contract, registry.py knows their names
sampling/    how their examples are drawn
masking/     which words are masked; ERNIE 1.0's own way too
baselines/   what is reached without reading
pretrain.py  the runner, and the job behind ``onion pretrain``; settings.py has its settings
"""
