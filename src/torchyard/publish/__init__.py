"""Channels: packages at addresses that never change, and pages that follow their states.

`channel` is the only part that writes; all others say what should become of a state.
"""
