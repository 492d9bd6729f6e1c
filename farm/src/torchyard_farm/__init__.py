"""Builds torchyard's plans on many machines, with Buildbot."""

__version__ = "0.1.0"
