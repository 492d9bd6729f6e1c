"""Twenty packages that rattler-build makes, by recipes written as those of feedstocks are."""

import platform
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from rattler_build import MultiOutputRecipe, Stage0Recipe, ToolConfiguration

_CC = "gcc -shared -fPIC -O1"
_TO_LIB = "-L$PREFIX/lib -Wl,-rpath,$PREFIX/lib"
_MINOR = sys.version_info.minor
PYTHON = f"3.{_MINOR}"
SITE = f"lib/python{PYTHON}/site-packages"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
_HEADERS = f"-I{sysconfig.get_path('include')}"
_ABI = [f"python >={PYTHON},<3.{_MINOR + 1}.0a0", f"python_abi {PYTHON}.* *_cp3{_MINOR}"]
_GLIBC = f"__glibc >={'.'.join(platform.libc_ver()[1].split('.')[:2])},<3.0.a0"
_MODULE = (
    '#include <Python.h>\\nstatic struct PyModuleDef d = {PyModuleDef_HEAD_INIT, \\"NAME\\"};'
    "\\nPyMODINIT_FUNC PyInit_NAME(void) { return PyModule_Create(&d); }\\n"
)

_Recipe = Mapping[str, object]


def _recipe(
    name: str,
    *script: str,
    run: Sequence[str] = (),
    tests: Sequence[object] = ({"script": ["test -n $PREFIX"]},),
    exports: Mapping[str, Sequence[str]] | None = None,
    build: Mapping[str, object] | None = None,
    constrains: Sequence[str] = (),
) -> _Recipe:
    return {
        "package": {"name": name, "version": "1.2.0"},
        "build": {"number": 3, "script": ["set -e", *script], **(build or {})},
        "requirements": {
            "run": [*run],
            "run_constraints": [*constrains],
            "run_exports": exports or {},
        },
        "tests": [*tests],
        "about": {
            "homepage": "https://example.org",
            "summary": f"{name} for tests",
            "license": "MIT",
            "license_file": "LICENSE",
        },
    }


def _library(code: str, name: str, *needs: str, compiler: str = _CC) -> str:
    """Return a line that compiles a library into the prefix."""
    kind = "c++" if "++" in compiler else "c"
    words = f"{compiler} -x {kind} - -x none {' '.join(needs)} -o $PREFIX/lib/{name}"
    return f"mkdir -p $PREFIX/lib; printf '{code}' | {words} -Wl,-soname,{name}"


def _module(name: str, file: str, *flags: str) -> str:
    code = _MODULE.replace("NAME", name)
    there = f"$PREFIX/{SITE}/{file}"
    words = f"{_CC} {' '.join(flags)} {_HEADERS} -x c - -o {there}"
    return f'mkdir -p $PREFIX/{SITE}/{name}; printf "{code}" | {words}'


_DEMO = _library("int demo(void) { return 1; }", "libdemo.so.1")
_PURE = 'mkdir -p $SP_DIR/NAME; echo "x = 1" > $SP_DIR/NAME/__init__.py'
_IMPORTS = {"python": {"imports": ["os"], "pip_check": False}}

RECIPES: list[_Recipe] = [
    _recipe("libdemo", _DEMO, run=[_GLIBC], exports={"weak": ["libdemo >=1.2.0,<2.0a0"]}),
    _recipe(  # with a test of package contents only
        "libplain",
        _library("int plain(void) { return 1; }", "libplain.so"),
        tests=[{"package_contents": {"files": ["lib/libplain.so"]}}],
    ),
    _recipe(  # headers, a link to a library, and a .pc file with the prefix
        "libdemo-devel",
        "mkdir -p $PREFIX/include $PREFIX/lib/pkgconfig",
        "echo 'int demo(void);' > $PREFIX/include/demo.h",
        "ln -s libdemo.so.1 $PREFIX/lib/libdemo.so",
        "echo prefix=$PREFIX > $PREFIX/lib/pkgconfig/demo.pc",
        run=["libdemo 1.2.0.*"],
    ),
    _recipe(
        "demo-tool",
        "mkdir -p $PREFIX/bin",
        f"echo 'int main(void) {{ return 0; }}' | gcc -x c - -o $PREFIX/bin/demo {_TO_LIB}",
        run=[_GLIBC],
        tests=[{"script": ["demo"]}],
    ),
    _recipe(
        "libcxxdemo",
        _library(
            "#include <iostream>\\nvoid f(int n) { std::cout << n; }\\n",
            "libcxxdemo.so",
            compiler="g++ -shared -fPIC",
        ),
        run=["libstdcxx >=12", "libgcc >=12", _GLIBC],
    ),
    _recipe(
        "libzdemo",
        _library(
            "char *zlibVersion(void); char *v(void) { return zlibVersion(); }",
            "libzdemo.so",
            "-l:libz.so.1",
        ),
        run=["libzlib >=1.2.13,<2.0a0"],
    ),
    _recipe(  # linked with a library of another package, which is not there while it is checked
        "libblasdemo",
        "mkdir -p $SRC_DIR/host",
        "echo 'void cblas_dgemm(void) {}' | "
        f"{_CC} -x c - -o $SRC_DIR/host/libopenblas.so -Wl,-soname,libopenblas.so.0",
        _library(
            "void cblas_dgemm(void); void g(void) { cblas_dgemm(); }",
            "libblasdemo.so",
            "-L$SRC_DIR/host",
            "-lopenblas",
            _TO_LIB,
        ),
        run=["libopenblas >=0.3.20,<1.0a0"],
    ),
    _recipe(
        "pymodule",
        _module("pymodule", f"pymodule/pymodule{SUFFIX}"),
        f"echo 'from pymodule.pymodule import *' > $PREFIX/{SITE}/pymodule/__init__.py",
        run=[*_ABI, _GLIBC],
        tests=[{"python": {"imports": ["pymodule"], "pip_check": False}}],
    ),
    _recipe(
        "pystable",
        _module("pystable", "pystable/pystable.abi3.so", "-DPy_LIMITED_API=0x030b0000"),
        run=_ABI,
        tests=[_IMPORTS],
    ),
    _recipe(
        "pyonly",
        f"mkdir -p $PREFIX/{SITE}/pyonly; echo 'x = 1' > $PREFIX/{SITE}/pyonly/__init__.py",
        run=_ABI,
        tests=[_IMPORTS],
    ),
    _recipe(
        "pynoarch",
        "mkdir -p $PREFIX/site-packages/pynoarch",
        "echo 'x = 1' > $PREFIX/site-packages/pynoarch/__init__.py",
        run=["python >=3.9", "typing_extensions"],
        tests=[_IMPORTS],
        build={"noarch": "python", "python": {"entry_points": ["pynoarch = pynoarch:main"]}},
    ),
    _recipe(
        "demo-data",
        "mkdir -p $PREFIX/share/demo; echo data > $PREFIX/share/demo/data.txt",
        build={"noarch": "generic"},
    ),
    _recipe("demo-meta", run=["libdemo 1.2.0.*", "demo-data"], tests=[]),
    _recipe(
        "demo-mutex",
        build={"noarch": "generic", "variant": {"down_prioritize_variant": 1}},
        tests=[],
    ),
    _recipe(
        "demo_linux-64",
        "mkdir -p $PREFIX/etc/conda/activate.d $PREFIX/etc/conda/deactivate.d",
        "echo 'export DEMO=$CONDA_PREFIX/bin' > $PREFIX/etc/conda/activate.d/demo.sh",
        "echo export DEMO_HOME=$PREFIX >> $PREFIX/etc/conda/activate.d/demo.sh",
        "echo unset DEMO > $PREFIX/etc/conda/deactivate.d/demo.sh",
        exports={"strong": ["libdemo >=1.2.0"]},
    ),
    _recipe(  # the prefix in a program
        "demo-paths",
        'mkdir -p $PREFIX/bin; printf "const char *p = \\"$PREFIX/share\\";'
        ' int main(void) { return !*p; }" | gcc -x c - -o $PREFIX/bin/demo-paths',
        run=[_GLIBC],
    ),
    _recipe(
        "demo-gpu",
        _library("int gpu(void) { return 1; }", "libdemogpu.so"),
        run=["__cuda >=13.0", "cuda-version >=13.0,<14.0a0"],
        constrains=["demo-cpu <0.0a0"],
        build={"string": "cuda130_h1234567_3"},
    ),
    _recipe(
        "demo-cmake",
        "mkdir -p $PREFIX/lib/cmake/demo $PREFIX/lib",
        'echo "set(DEMO_DIR $PREFIX/lib)" > $PREFIX/lib/cmake/demo/demo-config.cmake',
        "echo 'int s(void) { return 1; }' | gcc -c -x c - -o s.o; ar rcs $PREFIX/lib/libs.a s.o",
    ),
    _recipe(  # links to folders, and names that are not ASCII
        "demo-links",
        "mkdir -p $PREFIX/share/links/real; echo x > $PREFIX/share/links/real/naïve.txt",
        "ln -s real $PREFIX/share/links/alias",
        "ln -s real/naïve.txt $PREFIX/share/links/file",
    ),
    _recipe(
        "demo-script",
        "mkdir -p $PREFIX/bin; echo '#!/bin/sh' > $PREFIX/bin/demo-script",
        "chmod +x $PREFIX/bin/demo-script",
        run=["libdemo"],
    ),
]


def make_feedstocks(folder: Path) -> dict[str, Path]:
    """Return all packages by their names."""
    return {str(recipe["package"]["name"]): _make(recipe, folder) for recipe in RECIPES}  # type: ignore[index]


def _make(recipe: _Recipe, folder: Path) -> Path:
    name = str(recipe["package"]["name"])  # type: ignore[index]
    here = folder / name
    here.mkdir(parents=True)
    (here / "LICENSE").write_text("Use it.\n", encoding="utf-8")
    made = Stage0Recipe.from_dict(dict(recipe), recipe_dir=here)
    assert not isinstance(made, MultiOutputRecipe)
    options = ToolConfiguration(test_strategy="skip")
    made.run_build(tool_config=options, output_dir=here / "out", channels=[])
    (package,) = [*here.glob("out/linux-*/*.conda"), *here.glob("out/noarch/*.conda")]
    return package
