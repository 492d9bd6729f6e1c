"""Reports of `torchyard diff`."""
