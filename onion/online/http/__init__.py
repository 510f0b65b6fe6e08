"""The HTTP service of a run: ``Service`` and its ``Limits``. Everything else is imported when a service is started."""

from onion.online.http.limits import Limits
from onion.online.http.server import Service

__all__ = ["Limits", "Service"]
