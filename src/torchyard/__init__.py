"""torchyard builds, proves and ships PyTorch and everything compiled against it."""

__version__ = "0.1.0"
