"""Make ``python -m torchyard`` the same as ``torchyard``."""

from torchyard.cli.main import main

main()
