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
"""What is tried for tensors, one after the other."""
OTHERS = {"int": 1, "float": 1.0, "bool": False, "number": 1, "None": None}
NAMES = {
    "torch.Tensor": "Tensor",
    "at::Tensor": "Tensor",
    "SymInt": "int",
    "SupportsInt": "int",
    "SupportsFloat": "float",
}
"""Types, as schemas and several versions of pybind11 call them."""
SIGNATURE = re.compile(r"\w+\((.*)\) -> ")


def registered():
    return set(torch._C._dispatch_get_all_op_names())  # noqa: SLF001 - there is no other way


def operator(name):
    """Return what calls an operator, and the types of the arguments that have no default."""
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    wanted = [one for one in found._schema.arguments if not one.has_default_value()]  # noqa: SLF001
    return found, [(one.name if one.kwarg_only else "", str(one.type)) for one in wanted]


def functions(modules):
    """Yield the functions of compiled modules with the types that pybind11 writes down for them."""
    for module in modules:
        for name, value in vars(module).items():
            said = SIGNATURE.match(getattr(value, "__doc__", None) or "")
            if said and callable(value) and not isinstance(value, type):
                words = [one for one in said[1].split(", ") if one and "=" not in one]
                kinds = [("", one.partition(": ")[2]) for one in words]
                yield f"{module.__name__}.{name}", value, kinds


def plain(kind):
    """Return the name of a type; that of None for what may be left out."""
    kind = kind.replace("typing.", "")
    words = kind.split(" | ")
    if kind.startswith("Optional[") or "None" in words:
        return "None"
    return NAMES.get(words[0], words[0])


def attempts(kinds):
    """Yield arguments to try; none if some are of a type that can't be made up."""
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
    """Call a function in a process of its own; return "", or why it refuses, or its signal."""
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
    said = f"ended by {ended}" if ended else f"not tried, as {why}" if why else "called"
    print(f"{name}: {said}", flush=True)
counts = {"called": called, "not tried": untried}
said = ", ".join(f"{len(names)} {how}" for how, names in counts.items() if names)
assert not crashed, f"calling {', '.join(crashed)} ends the process"
print(f"note: {len(found)} operators{': ' * bool(said)}{said}")
