"""The Python API: open a home, ask, stream, resume."""

from sleuth.studio.client.services import furnished
from sleuth.studio.client.sleuth import DEFAULT_METHOD, Named, Sleuth, gateway_class, last, open_services, open_sleuth

__all__ = ["DEFAULT_METHOD", "Named", "Sleuth", "furnished", "gateway_class", "last", "open_services", "open_sleuth"]
