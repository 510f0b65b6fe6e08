"""A service under callers, beside other services of the same model.

__main__.py              what is measured
peers.py                 the other services: how they are started, and what they answer
services.py              the processes
callers.py               many callers at once, and their times
direct.py                ONNX Runtime called in a loop, the limit
transformers_service.py  transformers behind FastAPI
litserve_service.py      transformers behind LitServe
"""
