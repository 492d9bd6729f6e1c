"""Reports of `torchyard coverage`."""
