"""The service that a run is steered by, over HTTP."""

from onion.items.online.service.limits import Limits
from onion.items.online.service.server import Service

__all__ = ["Limits", "Service"]
