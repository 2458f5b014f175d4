"""The door: command line and composition roots."""

__version__ = "0.1.0"
