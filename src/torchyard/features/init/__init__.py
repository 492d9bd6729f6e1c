"""A first torchyard.toml."""
