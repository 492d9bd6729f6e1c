"""Facts from Python code: environment variables, downloads, imports, modules to compile."""

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import chain

from torchyard.toolchain.reading.source_text import (
    CodeReading,
    Download,
    DownloadKind,
    SourceLine,
    Switch,
    reading_table,
)

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_LONGEST = 200
_LARGEST = 1 << 19
"""Characters of a file; parsed, each can take 400 bytes."""
_ADDRESS = re.compile(r"(?:https?|git|ssh)://[^\s'\"]+")
_ASKING = (".os.getenv", ".getenv", ".environ.get")
_COMPUTED = "*"


def read_python(file: str, text: str) -> CodeReading:
    """Return the facts in the text of a file; empty if it is not Python."""
    try:
        return _Reader(file, _parse(text)).read()
    except _UNREADABLE:
        return CodeReading(file=file)


def first_imports(file: str, text: str) -> list[SourceLine]:
    """Return the modules that a file always imports when it is imported."""
    try:
        return list(_imports(file, _parse(text).body))
    except _UNREADABLE:
        return []


class _Reader:
    """Reads one file."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.nodes = list(ast.walk(tree))
        self.functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        self.bodies = [*tree.body, *chain.from_iterable(f.body for f in self.functions)]
        self.assigned = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }

    def read(self) -> CodeReading:
        imports = tuple(_imports(self.file, self.nodes))
        names = {found.text.rpartition(".")[2]: found.line for found in reversed(imports)}
        for node in self.nodes:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                names.setdefault(node.id if isinstance(node, ast.Name) else node.attr, node.lineno)
        hooks = [f for f in self.functions if f.name == "get_requires_for_build_wheel"]
        return CodeReading(
            file=self.file,
            switches=tuple(self._switches()),
            downloads=tuple(self._downloads()),
            imports=imports,
            needed=tuple(_imports(self.file, self.bodies)),
            names=names,
            keywords=dict(self._keywords()),
            hook=tuple(chain.from_iterable(map(self._texts, hooks))),
            compiles=next(self._modules(), None),
        )

    def _text(self, node: ast.AST | None, unknown: str = "") -> str:
        """Return a text as far as it is known, with `unknown` for computed parts."""
        if isinstance(node, ast.Name) and isinstance(self.assigned.get(node.id), ast.Constant):
            node = self.assigned[node.id]
        match node:
            case ast.Constant(value=value) if value is not None:
                return str(value)
            case ast.JoinedStr(values=parts):
                return "".join(self._text(part, unknown) for part in parts)
            case ast.FormattedValue(value=value):
                return self._text(value, unknown)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text(left, unknown) + self._text(right, unknown)
            case _:
                return unknown

    def _texts(self, node: ast.AST) -> Iterator[SourceLine]:
        """Yield the texts in the lists of a node, or of the variable that it names."""
        if isinstance(node, ast.Name):
            node = self.assigned.get(node.id, node)
        for part in ast.walk(node):
            for item in part.elts if isinstance(part, ast.List | ast.Tuple) else ():
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield SourceLine(item.value, self.file, item.lineno)

    def _keywords(self) -> Iterator[tuple[str, tuple[SourceLine, ...]]]:
        for node in self.nodes:
            if isinstance(node, ast.Call) and _dotted(node.func).endswith("setup"):
                for keyword in node.keywords:
                    text = self._text(keyword.value, _COMPUTED)
                    line = SourceLine(text, self.file, keyword.value.lineno)
                    yield (
                        keyword.arg or "",
                        tuple(self._texts(keyword.value) if _COMPUTED in text else [line]),
                    )

    def _switches(self) -> Iterator[Switch]:
        expected: dict[ast.AST, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                expected |= dict.fromkeys(ast.walk(node.left), self._text(node.comparators[0]))
        askers = {function.name for function in self.functions if _reads_its_parameter(function)}
        for node in self.nodes:
            if isinstance(node, ast.expr) and (lookup := _lookup(node, askers)):
                name, default = self._text(lookup[0], _COMPUTED), self._text(lookup[1])
                if name.strip(_COMPUTED):
                    expects = expected.get(node, "")
                    yield Switch(name, self.file, node.lineno, default=default, expects=expects)

    def _downloads(self) -> Iterator[Download]:
        table = reading_table()
        functions = tuple(f".{name}" for name in table.python_downloads)
        programs = re.compile(rf"(?<![\w-])(?:{'|'.join(table.programs)})\b")
        for node in self.nodes:
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called, first = _dotted(node.func), node.args[0]
            parts = [leaf for leaf in ast.walk(first) if isinstance(leaf, ast.Constant)]
            words = " ".join(str(leaf.value) for leaf in parts)
            if f".{called}".endswith(functions):
                kind, text = DownloadKind.PYTHON, called
                url = self._text(first) or ast.unparse(first)
            elif called.rpartition(".")[2] in table.starts and programs.search(words):
                kind, text = DownloadKind.PROGRAM, words
                url = "".join(_ADDRESS.findall(words)[:1])
            else:
                continue
            yield Download(text[:_LONGEST], self.file, node.lineno, kind=kind, url=url[:_LONGEST])

    def _modules(self) -> Iterator[SourceLine]:
        """Yield where the code lists modules to compile, by a keyword or the key of a table."""
        for node in self.nodes:
            if isinstance(node, ast.keyword | ast.Constant):
                name = node.arg if isinstance(node, ast.keyword) else node.value
                if isinstance(name, str) and name in reading_table().modules:
                    yield SourceLine(name, self.file, node.lineno)


def _parse(text: str) -> ast.Module:
    if len(text) > _LARGEST:
        msg = f"it has {len(text)} characters, more than {_LARGEST}"
        raise ValueError(msg)
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(text)


def _imports(file: str, nodes: list[ast.AST] | list[ast.stmt]) -> Iterator[SourceLine]:
    """Yield the modules that nodes import, without relative ones and Python's own."""
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                yield SourceLine(name, file, getattr(node, "lineno", 0))


def _reads_its_parameter(function: ast.FunctionDef) -> bool:
    """Return whether a function reads the environment variable in its first parameter."""
    first = function.args.args[0].arg if function.args.args else ""
    keys = (lookup[0] for node in ast.walk(function) if (lookup := _lookup(node, set())))
    return any(isinstance(key, ast.Name) and key.id == first for key in keys)


def _lookup(node: ast.AST, askers: set[str]) -> tuple[ast.expr, ast.expr | None] | None:
    """Return the name and default of the environment variable that an expression reads."""
    match node:
        case ast.Call(func=function, args=[key, *rest]):
            called = _dotted(function)
            if called in askers or f".{called}".endswith(_ASKING):
                return key, rest[0] if rest else None
        case (
            ast.Subscript(value=value, slice=key, ctx=ast.Load())
            | ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[value])
        ) if _dotted(value).endswith("environ"):
            return key, None
        case _:
            pass
    return None


def _dotted(node: ast.AST) -> str:
    """Return a dotted name; for other expressions, the attributes at their end."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""
