"""Write the kernels of aten/ops.txt as C++. The output is the same whichever Python runs this."""

import sys
from pathlib import Path

HEAD = """\
// Made by tools/gen.py.
#include "aten/math.h"
#include "c10/registry.h"

namespace tt {
namespace {
"""


def generate(text: str) -> str:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    ops = [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]
    body = [
        f"double {name}(double x) {{ return {expression}; }}\n"
        f'const Register registered_{name}("{name}", {name});'
        for name, expression in ops
    ]
    names = ", ".join(f'"{name}"' for name, _ in ops)
    tail = f"std::vector<std::string> op_names() {{ return {{{names}}}; }}\n\n}}  // namespace tt\n"
    return "\n".join([HEAD, *body, "\n}  // namespace\n", tail])


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    code = generate(source.read_text("utf-8"))
    if not target.exists() or target.read_text("utf-8") != code:  # else nothing need be compiled
        target.write_text(code, "utf-8")


if __name__ == "__main__":
    main()
