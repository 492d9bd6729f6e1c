"""The checks of the machine, one module per subject; compute platforms have their own."""
