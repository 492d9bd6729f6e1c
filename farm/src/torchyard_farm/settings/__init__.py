"""What a farm is: `farm.toml`, the directory of its master, who may do what, and when."""
