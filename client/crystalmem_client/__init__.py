"""Client of a CrystalMem edge daemon's local door. Standard library only."""

from crystalmem_client.client import Client, CrystalMemError, Hit, Recall, default_socket

__all__ = ["Client", "CrystalMemError", "Hit", "Recall", "default_socket"]
