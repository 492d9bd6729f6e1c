"""The web pages of plans: pure functions that return HTML and text."""
