"""Turns a config into a plan: an immutable graph of jobs, each with a fingerprint.

Nothing here touches a process, a socket, a clock or a disk: the same config gives the same plan
on every machine. :mod:`expand` and :mod:`build` make plans; the other modules query them.
"""
