"""A service in a thread."""

import threading
from contextlib import contextmanager

from onion.serving.server import ModelServer
from tests.patience import PATIENCE


@contextmanager
def served(models, **settings):
    """Yield a running service; it has ended when this is left."""
    server = ModelServer(models, **{"port": 0, "workers": 1, **settings})
    thread = threading.Thread(target=server.run, kwargs={"signals": False})
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
