"""The configuration of a farm: `farm.toml`, the master's directory, roles, TLS and schedules."""
