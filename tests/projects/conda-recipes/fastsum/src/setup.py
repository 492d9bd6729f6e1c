"""Compile the module as pip would, without anything but Python."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

blas = os.environ["BLAS_IMPL"] == "openblas"
site = os.environ["SP_DIR"]
argv = [
    *shlex.split(os.environ["CC"]),
    *shlex.split(os.environ["CFLAGS"]),
    f"-I{sysconfig.get_path('include')}",
    *(["-DWITH_BLAS"] if blas else []),
    *("-shared", "-o", site + "/fastsum" + sysconfig.get_config_var("EXT_SUFFIX")),
    "fastsum.c",
    *shlex.split(os.environ["LDFLAGS"]),
    *(["-lopenblas"] if blas else []),
]
Path(site).mkdir(parents=True, exist_ok=True)
subprocess.run(argv, check=True)
