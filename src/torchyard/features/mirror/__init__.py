"""A part of another index, taken into a channel."""
