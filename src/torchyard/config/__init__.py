"""`torchyard.toml` and the shipped tables become models; every value remembers its origin."""
