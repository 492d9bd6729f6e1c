"""Reports of `torchyard check`: JSON, text, HTML."""
