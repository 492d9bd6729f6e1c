"""The commands of `torchyard farm`."""
