"""Reports of `torchyard publish`."""
