"""Reports of `torchyard index check`."""
