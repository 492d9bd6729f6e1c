"""Reports of `torchyard toolchain`."""
