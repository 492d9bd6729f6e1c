"""The rules for packages, one module per subject."""
