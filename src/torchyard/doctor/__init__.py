"""What a machine is inspected for before a build, by `torchyard doctor`."""
