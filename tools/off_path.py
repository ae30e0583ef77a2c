#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a function executes while every tracepoint is off: stock and patched, side by side.

usage: off_path.py STOCK.o PATCHED.o FUNCTION...
A tracepoint that is off is a no-operation in the code; what it guards is reached through
the jump table only. So the instructions that can be reached from a function's entry, along
jumps and from one instruction to the next, are those that it can execute when all are off.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

__all__ = ["Code", "Instruction", "parse", "reachable"]

_FUNCTION = re.compile(r"^([0-9a-f]+) <(\S+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:(?:data16|cs|rep|repz|lock|notrack) )*(\S+)\s*([^#]*)")
_RELOCATION = re.compile(r"^\s*([0-9a-f]+): R_\S+\s+(\S+)")
_STATIC_KEY = re.compile(r"^([0-9a-f]+) R_X86_64_PC32\s+(\S+?)(?:[+-]0x[0-9a-f]+)?$")
_PROLOGUE_ONLY = ("__fentry__", "__x86_return_thunk")


@dataclass(frozen=True)
class Instruction:
    """One line of objdump; `target` is where a jump inside the function goes."""

    at: int
    name: str
    operands: str
    target: int | None = None
    leaves: bool = False

    @property
    def is_nop(self) -> bool:
        return self.name.startswith("nop") or (self.name, self.operands) == ("xchg", "%ax,%ax")


@dataclass(frozen=True)
class Code:
    """A function's instructions in the order of their addresses."""

    name: str
    instructions: tuple[Instruction, ...]
    end: int

    @property
    def size(self) -> int:
        return self.end - self.instructions[0].at


def parse(text: str) -> dict[str, Code]:
    """The functions of `objdump -dr --no-show-raw-insn`."""
    functions: dict[str, Code] = {}
    name, found = "", []

    def close(end: int) -> None:
        if found:
            functions[name] = Code(name, tuple(found), end)

    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            close(int(match[1], 16))
            name, found = match[2], []
        elif match := _RELOCATION.match(line):
            last = found[-1]
            if last.name.startswith("j"):
                # The address is not known yet: a call of another function in tail position.
                found[-1] = Instruction(last.at, last.name, match[2], None, last.name == "jmp")
        elif match := _LINE.match(line):
            operands = match[3].strip()
            target = None
            if match[2].startswith("j") and (to := re.match(r"([0-9a-f]+) <", operands)):
                target = int(to[1], 16)
            found.append(
                Instruction(int(match[1], 16), match[2], operands, target,
                            match[2].startswith(("ret", "ud2")) or
                            (match[2] == "jmp" and target is None))
            )  # fmt: skip
    if found:
        close(found[-1].at + 1)
    return functions


def reachable(code: Code) -> list[Instruction]:
    """The instructions that can be executed from the entry on, without any static key."""
    places = {one.at: number for number, one in enumerate(code.instructions)}
    waiting, seen = [0], set()
    while waiting:
        number = waiting.pop()
        if number in seen or number >= len(code.instructions):
            continue
        seen.add(number)
        one = code.instructions[number]
        if one.target in places:
            waiting.append(places[one.target])
        if not one.leaves and one.name != "jmp":
            waiting.append(number + 1)
    return [code.instructions[number] for number in sorted(seen)]


def _disassembly(path: str) -> dict[str, Code]:
    command = ["objdump", "-dr", "--no-show-raw-insn", "-j", ".text", path]
    return parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _kinds(instructions: list[Instruction]) -> Counter[str]:
    """How many of each kind; padding and static keys are no work."""
    return Counter(one.name for one in instructions if not one.is_nop)


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    stock, patched = _disassembly(sys.argv[1]), _disassembly(sys.argv[2])
    print(f"{'function':32} {'':8} {'bytes':>6} {'reached':>8} {'no-ops':>7} {'work':>6}")
    for name in sys.argv[3:]:
        kinds = []
        for which, functions in (("stock", stock), ("patched", patched)):
            if name not in functions:
                print(f"{name:32} {which:8} no function of its own: inlined")
                continue
            code = functions[name]
            reached = reachable(code)
            work = _kinds(reached)
            kinds.append(work)
            total = sum(work.values())
            print(f"{name:32} {which:8} {code.size:6} {len(reached):8} "
                  f"{len(reached) - total:7} {total:6}")  # fmt: skip
        if len(kinds) == 2:
            more = dict((kinds[1] - kinds[0]).items())
            less = dict((kinds[0] - kinds[1]).items())
            print(f"{'':32} more: {more or 'nothing'}; less: {less or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
