"""What a configuration means on this machine: its stores, channels, plans and jobs.

Features share this room, and nothing here parses a command line or prints.
"""
