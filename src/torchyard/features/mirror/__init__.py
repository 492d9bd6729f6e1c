"""A part of another index, copied into a channel."""
