"""What is in packages: their bills of materials."""
