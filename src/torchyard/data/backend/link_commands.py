"""Note the link commands of setuptools, which are in no build.ninja.

This runs in the project's environment: with any Python, and any release of setuptools.
"""

import json
import os


def note_links(path):
    """Make the loaded setuptools append each link command to a file, with its directory."""
    from distutils.ccompiler import CCompiler

    def noting(run):
        def noted(self, cmd, *args, **kwargs):
            if "-shared" in cmd:
                with open(path, "a", encoding="utf-8") as file:
                    file.write(json.dumps([os.getcwd(), list(map(str, cmd))]) + "\n")
            return run(self, cmd, *args, **kwargs)

        return noted

    for name in ("call", "spawn"):  # the new name, and the old one
        if hasattr(CCompiler, name):
            setattr(CCompiler, name, noting(getattr(CCompiler, name)))
