"""Taking a part of another index into a channel."""
