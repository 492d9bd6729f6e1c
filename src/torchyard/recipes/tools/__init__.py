"""Tools for steps of recipes in a job's directory: `torchyard tool NAME` calls `NAME_tool`.

Parameters after `*` are options, the others arguments. Standard output is read by the step, or
goes to the job's log.
"""

TOOLS = {
    "artifact": "tools.cmake",
    "ask": "tools.cmake",
    "bind": "tools.cmake",
    "build-recipe": "tools.conda",
    "check-glibc": "tools.project",
    "check-summary": "tools.cmake",
    "check-version": "tools.cmake",
    "collect": "tools.libraries",
    "collect-extension": "tools.libraries",
    "configure-again": "tools.cmake",
    "core-targets": "tools.cmake",
    "define": "tools.cmake",
    "install-script": "tools.cmake",
    "inventory": "tools.libraries",
    "keep-environments": "tools.libraries",
    "keep-project": "tools.project",
    "keep-times": "tools.cmake",
    "pack": "packing",
    "project-wheel": "tools.project",
    "repoint": "tools.cmake",
    "restore": "tools.cmake",
    "take-output": "tools.conda",
    "unpack": "tools.project",
}
"""The module of each tool, below `recipes`."""
