"""Reports of `torchyard diagnose`."""
