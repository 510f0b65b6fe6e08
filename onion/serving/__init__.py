"""``onion serve``: trained models and encoders over HTTP. It keeps no state but the models.

server.py         the process: a socket, signals, the end
app.py            all routes behind the guard
protocols/        how clients speak: text-embeddings-inference, OpenAI, the Open Inference Protocol, onion's own
calls.py          a call: its body, its rows, its answers, its caller who may have gone
batcher.py        the queue before the models, and the thread that computes
servable.py       a model as the batcher sees it
served_models.py  the models by name, and their exchange
limits.py, metrics.py, call_log.py
"""
