"""Reports of `torchyard index check` and `torchyard mirror`."""
