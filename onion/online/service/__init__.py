"""The service that a run is steered by, over HTTP."""

from onion.online.service.limits import Limits
from onion.online.service.server import Service

__all__ = ["Limits", "Service"]
