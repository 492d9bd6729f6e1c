"""An example of a plug-in for torchyard."""
