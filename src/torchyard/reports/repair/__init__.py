"""Reports of `torchyard repair`."""
