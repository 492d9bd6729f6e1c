"""A channel: its head, states and pages, and the one way in which it changes."""
