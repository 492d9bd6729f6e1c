"""Reports of `torchyard compat`."""
