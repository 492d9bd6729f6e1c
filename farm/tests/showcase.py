"""A project that looks like PyTorch on a farm's pages, and takes seconds to build."""

from collections.abc import Sequence

from tests.support.helpers import to_toml

_TEXT = """\
[project]
name = "torch"
version = "2.14.0"

[source]
path = "code"

[matrix]
platform = ["linux-x86_64"]
compute = {computes}
blas = ["mkl"]
python = {pythons}
package = {packages}

[[steps.core]]
name = "configure"
run = "echo '-- The CXX compiler identification is GNU 13.3.0'; echo '-- Configuring done (3.1s)'"

[[steps.core]]
name = "compile"
run = '''
mkdir -p {{out}}/lib
for i in $(seq 1 120); do
  echo "[$i/120] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/aten/unit_$i.cpp.o"
  sleep {pace}
done
cat {{source}}/*.txt > {{out}}/lib/libtorch_cpu.so
'''
outputs = ["lib/*"]

[[steps.bindings]]
name = "compile"
run = '''
case {{compute}}-{{python}} in
cu126-cp314)
  echo "[41/149] Building CXX object torch/csrc/autograd/init.cpp.o"
  echo "FAILED: torch/csrc/autograd/init.cpp.o"
  echo "c++ -c torch/csrc/autograd/init.cpp"
  echo "torch/csrc/autograd/init.cpp:12:10: fatal error: nvToolsExt.h: No such file or directory"
  echo "ninja: build stopped: subcommand failed."
  exit 1 ;;
esac
cat {{core}}/lib/* > {{out}}/{{python}}.bin
'''

[[steps.package]]
run = "head -c 4000000 /dev/zero > {{out}}/torch-{{version}}-{{compute}}-{{python}}.{{kind}}"

[steps]
check = []
smoke = []
"""


BROKEN = "bindings:torch-2.14.0/linux-x86_64/cu126-mkl/cp314"
"""The job that fails."""


def shown_text(
    pace: float,
    computes: Sequence[str] = ("cpu", "cu126", "cu130"),
    pythons: Sequence[str] = ("cp312", "cp313", "cp314"),
    packages: Sequence[str] = ("wheel", "conda", "libtorch"),
) -> str:
    """Return the configuration; a core has 120 units of this many seconds."""
    return _TEXT.format(
        pace=pace,
        computes=to_toml(computes),
        pythons=to_toml(pythons),
        packages=to_toml(packages),
    )
