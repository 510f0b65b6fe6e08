"""The HTTP service of a run: ``Service`` and ``Limits``. The web framework is imported when a service starts."""

from onion.online.http.limits import Limits
from onion.online.http.server import Service

__all__ = ["Limits", "Service"]
