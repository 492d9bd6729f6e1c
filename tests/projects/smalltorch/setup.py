"""Configures, and does nothing else."""

import subprocess

subprocess.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "build"], check=True)
