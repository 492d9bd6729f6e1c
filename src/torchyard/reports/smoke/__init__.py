"""Reports of `torchyard smoke`."""
