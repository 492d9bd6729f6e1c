"""Reports of `torchyard develop`."""
