"""Reports of `torchyard env`."""
