# SPDX-License-Identifier: Apache-2.0
"""Which programs a Python file starts: words in its calls that start one, and shell text in them.

A word is followed through names that the file gives it. What cannot be told from the text is
returned as it stands, so that somebody has to say what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from programs_shell import programs_in_shell

__all__ = ["Found", "programs_in_python"]

Found = tuple[set[str], set[str]]  # programs, and expressions that are not known

# Of these calls, the argument with that number is a command, its first word the program.
_COMMANDS = {
    **{f"subprocess.{name}": 0 for name in ("run", "Popen", "call", "check_call", "check_output")},
    **{f"os.{name}": 0 for name in ("execv", "execve", "execvp", "execvpe", "posix_spawn")},
    "os.posix_spawnp": 0,
    "run": 0,  # tests/support/tools.py
}
# Calls of whatever has such a name, where the argument is written as a list.
_LIKELY = ("run", "start", "launch", "spawn", "call")
# Of these, the argument is a program's name.
_NAMES = {"shutil.which": 0, "require_program": 0, "_program": 0, "pexpect.spawn": 0}
# Of these, it is shell text.
_SHELL = {"os.system": 0, "os.popen": 0, "recorder.apart": 0}
# What these give is the project's own, or the advice of one of its errors.
_OWN = (
    "wbscope_path", "ingester_path", "sys.executable", "require_program", "shutil.which",
    "wbscope._program", "self._program", "caught.value.fix",
)  # fmt: skip
_HOLE = "$x"  # in shell text, what Python puts in
_DEEPEST = 8


Values = dict[str, list[ast.expr]]


@dataclass(frozen=True)
class _Helper:
    """A function of the file, and which of its parameters is a command or a program's name."""

    parameter: str
    place: int  # of the caller's arguments
    is_command: bool
    is_rest: bool  # *words


class _File:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.scopes: list[Values] = []  # module, functions, loops
        self.programs: set[str] = set()
        self.unknown: set[str] = set()
        self.functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []  # around the place
        self.helpers: dict[str, _Helper] = {}
        self.followed: dict[str, _Helper] = {}
        self.called: set[str] = set()
        self.imports_run = any(
            alias.name == "run"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("tools")
            for alias in node.names
        )

    def found(self) -> Found:
        self._visit(self.tree)
        # A function that starts what it is given: what its callers in this file give it.
        while self.helpers != self.followed:
            self.followed = dict(self.helpers)
            self.programs, self.unknown = set(), set()
            self._visit(self.tree)
        for name, helper in self.helpers.items():
            if name not in self.called:
                self.unknown.add(helper.parameter)
        return self.programs, self.unknown

    def _visit(self, node: ast.AST) -> None:
        before = len(self.scopes)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            self.scopes.append(_assigned(node))
            if not isinstance(node, ast.Module):
                self.functions.append(node)
        elif isinstance(node, ast.For):
            self._items(node.target, node.iter)
        for part in getattr(node, "generators", []):
            self._items(part.target, part.iter)
        if isinstance(node, ast.Call):
            for known, name in self._of_call(node):
                (self.programs if known else self.unknown).add(name)
            self.programs |= self._in_words(node.args)
        elif isinstance(node, ast.List | ast.Tuple):
            self.programs |= self._in_words(node.elts)
        for child in ast.iter_child_nodes(node):
            self._visit(child)
        del self.scopes[before:]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.pop()

    def _items(self, target: ast.expr, source: ast.expr) -> None:
        """for x in ("a", "b"): each of them."""
        if not isinstance(target, ast.Name):
            return
        if len(found := self._given(source, 0)) == 1:
            source = found[0]
        if isinstance(source, ast.Tuple | ast.List):
            self.scopes.append({target.id: source.elts})

    def _of_call(self, call: ast.Call) -> Iterator[tuple[bool, str]]:
        name = ast.unparse(call.func)
        last = name.rpartition(".")[2]
        known = name in _COMMANDS and (name != "run" or self.imports_run)
        if not known and last in _LIKELY and call.args and isinstance(call.args[0], ast.List):
            yield from (found for found in self._first(call.args[0], 0) if found[0])
        for table, take in ((_COMMANDS, self._first), (_NAMES, self._name)):
            place = table.get(name)
            if place is not None and len(call.args) > place and (known or table is _NAMES):
                yield from take(call.args[place], 0)
        if helper := self.followed.get(last):
            self.called.add(last)
            given = [key.value for key in call.keywords if key.arg == helper.parameter]
            given += call.args[helper.place : None if helper.is_rest else helper.place + 1]
            if helper.is_rest and helper.is_command:
                yield from self._first(ast.List(given), 0)
            elif given:
                yield from (self._first if helper.is_command else self._name)(given[0], 0)
        place = _SHELL.get(name)
        if place is not None and len(call.args) > place:
            text = self._text(call.args[place], 0)
            if text is None:
                yield False, ast.unparse(call.args[place])
            else:
                yield from ((True, program) for program in programs_in_shell(text))

    def _first(self, expression: ast.expr, depth: int) -> Iterator[tuple[bool, str]]:
        """The program of a command."""
        if isinstance(expression, ast.List | ast.Tuple):
            if not expression.elts:
                return
            first = expression.elts[0]
            if isinstance(first, ast.Starred):
                yield from self._first(first.value, depth)
                given = self._given(first.value, depth)
                if any(isinstance(value, ast.List) and not value.elts for value in given):
                    yield from self._first(ast.List(expression.elts[1:]), depth)
            else:
                yield from self._name(first, depth)
        elif isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
            yield from self._first(expression.left, depth)
        elif isinstance(expression, ast.IfExp):
            yield from self._first(expression.body, depth)
            yield from self._first(expression.orelse, depth)
        elif ast.unparse(expression) in _OWN:
            return
        elif values := self._given(expression, depth):
            for value in values:
                yield from self._first(value, depth + 1)
        elif isinstance(expression, ast.Call) and ast.unparse(expression.func) == "list":
            yield from self._first(expression.args[0], depth)
        elif not self._is_parameter(expression, True):
            yield False, ast.unparse(expression)

    def _is_parameter(self, expression: ast.expr, is_command: bool) -> bool:
        """Of the function around it, which is noted: its callers tell."""
        if not isinstance(expression, ast.Name) or not self.functions:
            return False
        function = self.functions[-1]
        names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
        bound = names[:1] in (["self"], ["cls"])
        rest = function.args.vararg.arg if function.args.vararg else None
        if expression.id not in (*names, rest):
            return False
        is_rest = expression.id == rest
        place = (len(names) if is_rest else names.index(expression.id)) - bound
        self.helpers[function.name] = _Helper(expression.id, place, is_command, is_rest)
        return True

    def _name(self, expression: ast.expr, depth: int) -> Iterator[tuple[bool, str]]:
        text = ast.unparse(expression)
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            yield True, expression.value
        elif text.split("(")[0] in _OWN:
            return  # looked at where it is called
        elif isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Div):
            last = expression.right
            if isinstance(last, ast.Constant) and isinstance(last.value, str):
                yield True, f"./{last.value}"
            else:
                yield False, text
        elif isinstance(expression, ast.BoolOp | ast.IfExp):
            parts = (
                expression.values
                if isinstance(expression, ast.BoolOp)
                else [expression.body, expression.orelse]
            )
            for part in parts:
                yield from self._name(part, depth)
        elif values := self._given(expression, depth):
            for value in values:
                yield from self._name(value, depth + 1)
        elif isinstance(expression, ast.Call) and text.startswith(("str(", "Path(")):
            if not expression.args:
                return
            yield from self._name(expression.args[0], depth)
        elif not self._is_parameter(expression, False):
            yield False, text

    def _given(self, expression: ast.expr, depth: int) -> Sequence[ast.expr]:
        if isinstance(expression, ast.Name) and depth < _DEEPEST:
            for scope in reversed(self.scopes):
                if expression.id in scope:
                    return scope[expression.id]
        return []

    def _in_words(self, words: Sequence[ast.expr]) -> set[str]:
        """What follows -- is a command, and sh -c has shell text, wherever the words end up."""
        found: set[str] = set()
        plain = [word.value if isinstance(word, ast.Constant) else None for word in words]
        for at, word in enumerate(plain[:-1]):
            following = plain[at + 1]
            if word == "--" and isinstance(following, str) and following.isprintable():
                found.add(following)
            if word in ("sh", "bash") and following == "-c" and at + 2 < len(words):
                found.add(word)
                text = self._text(words[at + 2], 0)
                if text is not None:
                    found |= programs_in_shell(text)
        return found

    def _text(self, expression: ast.expr, depth: int) -> str | None:
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            return expression.value
        if isinstance(expression, ast.JoinedStr):
            parts = []
            for part in expression.values:
                if isinstance(part, ast.FormattedValue):
                    parts.append(self._text(part.value, depth) or _HOLE)
                else:
                    parts.append(self._text(part, depth) or "")
            return "".join(parts)
        if values := self._given(expression, depth):
            texts = [self._text(value, depth + 1) for value in values]
            return "\n".join(text for text in texts if text) or None
        return None


def _assigned(scope: ast.AST) -> Values:
    """What the names of a module or a function are given, without the functions in it."""
    found: Values = {}
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def programs_in_python(text: str) -> Found:
    return _File(ast.parse(text)).found()
