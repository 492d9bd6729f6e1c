"""One module per command: parse, call a use case, print."""
