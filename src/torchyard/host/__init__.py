"""The only door to the machine: files, processes, git, memory."""
