"""Stands for torch: what a build of an extension asks it for, and nothing else."""

from torch import version

__version__ = version.__version__
