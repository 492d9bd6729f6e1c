"""Reports of `torchyard mirror`."""
