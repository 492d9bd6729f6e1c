"""One module for each command, named like it, with the click command in `command`.

A module `GROUP_NAME` is the subcommand NAME of GROUP. Nothing imports these modules but the loader
in `lazy_group`: what two commands share is a use case, and belongs in `torchyard.app`.
"""
