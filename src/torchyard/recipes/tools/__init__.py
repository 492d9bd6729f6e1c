"""What steps of recipes run in a job's directory: `torchyard tool NAME` calls `NAME_tool`.

Parameters behind `*` are options, the others arguments. What a function writes to standard output
is read by the step, or is the job's log.
"""

TOOLS = {
    "artifact": "cmake",
    "ask": "cmake",
    "bind": "cmake",
    "check-glibc": "packages",
    "check-summary": "cmake",
    "check-version": "cmake",
    "collect": "packages",
    "collect-extension": "packages",
    "configure-again": "cmake",
    "core-targets": "cmake",
    "define": "cmake",
    "install-script": "cmake",
    "pack": "packages",
    "project-wheel": "packages",
    "repoint": "cmake",
    "restore": "cmake",
    "unpack": "packages",
}
"""The module of each."""
