"""What onion costs, beside its peers; each is run as ``python -m benchmarks.NAME``.

loop, finetune, pretraining, inference, layers, data, saving, growth   sections of benchmarks/results.md, in rounds
results, pretraining.study, composition, online, online_load           pages of docs/, of runs that are kept as files
frame                                                                  what they share
"""
