"""Reports of `torchyard ci`."""
