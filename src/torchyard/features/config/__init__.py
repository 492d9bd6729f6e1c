"""What the configuration says, and what it may say."""
