"""Who made packages, and from what."""
