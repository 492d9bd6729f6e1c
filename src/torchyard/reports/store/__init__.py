"""Reports of `torchyard store`."""
