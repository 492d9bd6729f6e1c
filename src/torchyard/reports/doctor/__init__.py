"""Reports of `torchyard doctor`."""
