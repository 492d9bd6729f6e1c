"""The toolchains of this machine."""
