# level: ops
# about: no operator that is registered ends the process when it is called
import os
import re
import runpy
import signal
import sys

import torch

MOST = 99  # tensors of one operator
TENSORS = (
    ("float matrices", [torch.ones(4, 4)] * MOST),
    ("float vectors", [torch.ones(4)] * MOST),
    ("a vector and indexes", [torch.ones(4), *[torch.zeros(4, dtype=torch.int64)] * MOST]),
)
"""Tensors to try, in this order."""
OTHERS = {"int": 1, "float": 1.0, "bool": False, "number": 1, "None": None}
NAMES = {
    "torch.Tensor": "Tensor",
    "at::Tensor": "Tensor",
    "SymInt": "int",
    "SupportsInt": "int",
    "SupportsFloat": "float",
}
"""Names of types in schemas and in several versions of pybind11."""
SIGNATURE = re.compile(r"\w+\((.*)\) -> ")


def registered():
    return set(torch._C._dispatch_get_all_op_names())  # noqa: SLF001 - there is no other way


def operator(name):
    """Return an operator's overload, and the types of its arguments without a default."""
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    wanted = [arg for arg in found._schema.arguments if not arg.has_default_value()]  # noqa: SLF001
    return found, [(arg.name if arg.kwarg_only else "", str(arg.type)) for arg in wanted]


def functions(modules):
    """Yield the functions of compiled modules, with argument types from pybind11's docstrings."""
    for module in modules:
        for name, value in vars(module).items():
            signature = SIGNATURE.match(getattr(value, "__doc__", None) or "")
            if signature and callable(value) and not isinstance(value, type):
                words = [word for word in signature[1].split(", ") if word and "=" not in word]
                kinds = [("", word.partition(": ")[2]) for word in words]
                yield f"{module.__name__}.{name}", value, kinds


def plain(kind):
    """Return the name of a type; "None" for an optional one."""
    kind = kind.replace("typing.", "")
    words = kind.split(" | ")
    if kind.startswith("Optional[") or "None" in words:
        return "None"
    return NAMES.get(words[0], words[0])


def attempts(kinds):
    """Yield arguments to try; none if a type has no sample value."""
    kinds = [(name, plain(kind)) for name, kind in kinds]
    if not {*OTHERS, "Tensor"}.issuperset(kind for _, kind in kinds):
        return
    has_tensors = any(kind == "Tensor" for _, kind in kinds)
    for _, tensors in TENSORS if has_tensors else TENSORS[:1]:
        left = iter(tensors)
        values = [
            (name, next(left).clone() if kind == "Tensor" else OTHERS[kind]) for name, kind in kinds
        ]
        yield [value for name, value in values if not name], {n: v for n, v in values if n}


def call(function, kinds):
    """Call a function in a child process; return why it refuses, and the signal that ended it."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        why = ""
        for given, named in attempts(kinds):
            try:
                function(*given, **named)
                why = ""
                break
            except Exception as error:  # noqa: BLE001 - any error is better than a crash
                text = " ".join(str(error).split())[:200]
                why = why or f"{type(error).__name__}: {text}"
        os.write(write, why.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        why = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        return None, signal.Signals(-status).name if status < 0 else f"exit code {status}"
    return why, ""


before, known = registered(), set(sys.modules)
names = runpy.run_path(os.path.join(os.path.dirname(__file__), "../modules.py"))["names"]
compiled = [
    module
    for name, module in list(sys.modules.items())
    if any(f"{name}.".startswith(f"{own}.") for own in names)  # not those of its requirements
    and name not in known
    and (getattr(module, "__file__", None) or "").endswith(".so")
]
found = {name: operator(name) for name in sorted(registered() - before)}
plain_functions = {name: (value, kinds) for name, value, kinds in functions(compiled)}
found |= plain_functions
called, untried, crashed = [], [], []
for name, (function, kinds) in found.items():
    why, ended = f"it takes {', '.join(kind for _, kind in kinds)}", ""
    if list(attempts(kinds)):
        why, ended = call(function, kinds)
        why = why and f"it refuses made-up arguments: {why}"
    takes_number = name in plain_functions and any(plain(kind) == "int" for _, kind in kinds)
    if ended == "SIGSEGV" and takes_number:
        why, ended = "a made-up number may stand for an address", ""
    (crashed if ended else untried if why else called).append(name)
    outcome = f"ended by {ended}" if ended else f"not tried, as {why}" if why else "called"
    print(f"{name}: {outcome}", flush=True)
counts = {"called": called, "not tried": untried}
summary = ", ".join(f"{len(names)} {how}" for how, names in counts.items() if names)
assert not crashed, f"calling {', '.join(crashed)} ends the process"
print(f"note: {len(found)} operators{': ' * bool(summary)}{summary}")
