"""Reports of `torchyard which`."""
