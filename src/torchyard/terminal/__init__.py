"""The two streams of a command: data on standard output, messages on standard error."""
