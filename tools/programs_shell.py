# SPDX-License-Identifier: Apache-2.0
"""Which programs a shell script starts: the first word of each of its commands.

Not a shell: it follows quotes, comments, here-documents, substitutions, case and function names,
which is what the scripts of this repository use. A word that holds a variable names no program.
"""

from __future__ import annotations

import re

__all__ = ["programs_in_makefile", "programs_in_shell"]

_BUILTIN_WORDS = """
. : alias bg break cd command continue declare echo eval exec exit export false fg getopts hash jobs
kill let local mapfile popd printf pushd pwd read readarray readonly return set shift shopt source
test times trap true type typeset ulimit umask unalias unset wait [
"""
_BUILTINS = frozenset(_BUILTIN_WORDS.split())
_BEFORE_COMMAND = ("if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time")
_AFTER_COMMAND = ("fi", "done", "esac")
# These run their arguments: how many words of their own come first, options apart.
_WRAPPERS = {
    "chroot": 1, "command": 0, "env": 0, "exec": 0, "nice": 0, "nohup": 0, "setsid": 0,
    "sudo": 0, "timeout": 1, "xargs": 0,
}  # fmt: skip
_ASSIGNMENT = re.compile(r"\w+(?:\[[^\]]*\])?\+?=")
_UNKNOWN = "\0"  # stands for what only a shell knows
_ARRAY = re.compile(r'"\$\{(\w+)\[@\]\}"')
_MAKE_REFERENCE = re.compile(r"\$[({]([^(){}$]*)[)}]")  # the innermost
_MAKE_DEFINED = re.compile(r"^([\w.-]+)\s*[:?]?=\s*(.*)$", re.MULTILINE)


class _Script:
    """A walk over the text; what it found is in `programs`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.programs: set[str] = set()
        self.functions = set(re.findall(r"(?m)(?:^|[\s;])(?:function\s+)?([\w-]+)\s*\(\)", text))
        self._documents: list[tuple[str, bool]] = []
        self._arrays: dict[str, set[str]] = {}

    def found(self) -> set[str]:
        self._commands(0, "")
        return self.programs - self.functions - _BUILTINS

    def _commands(self, at: int, end: str) -> int:
        """Walk to the closing character of a substitution; returns the place behind it."""
        text = self.text
        wanted, skip, patterns, cases, wrapped = True, 0, False, 0, False
        while at < len(text):
            char = text[at]
            if char == end and not patterns:
                return at + 1
            if char in " \t":
                at += 1
            elif text.startswith("\\\n", at):
                at += 2
            elif char == "\n":
                at = self._skip_documents(at + 1)
                wanted, skip, wrapped = True, 0, False
            elif char == "#":
                at = _line_end(text, at)
            elif text.startswith(";;", at):
                at, wanted, patterns = at + 2, False, cases > 0
            elif char == ")":  # of a pattern, or of a group
                at, wanted, patterns, skip = at + 1, True, False, 0
            elif char in "<>" and text[at + 1 : at + 2] != "(":
                at = self._redirection(at)
            elif char in ";&|(<>":
                at += 1 + (char in "<>")
                wanted, skip, wrapped = not patterns, 0, False
            else:
                start = at
                word, at = self._word(at)
                if word.isdecimal() and text[at : at + 1] in ("<", ">"):
                    continue  # of a redirection
                if patterns:
                    if word == "esac":
                        patterns, wanted, cases = False, False, cases - 1
                elif word == "in" and not wanted and cases and text[:at].rstrip().endswith("in"):
                    patterns = self._case_begins(at)
                elif wanted:
                    if word == "case":
                        cases, wanted = cases + 1, False
                    elif word == "esac":
                        cases, wanted = cases - 1, False
                    elif word in ("for", "select", "function"):
                        wanted = False
                    elif word == "[[":
                        at, wanted = text.index("]]", at) + 2, False
                    elif word in _AFTER_COMMAND:
                        wanted = False
                    elif word in _BEFORE_COMMAND or _ASSIGNMENT.match(word):
                        at = self._list(at, word.rstrip("+="))
                    elif array := _ARRAY.fullmatch(text[start:at]):
                        wanted = False
                        self.programs |= self._arrays.get(array[1], set())
                    elif wrapped and (word.startswith("-") or skip):
                        # `command -v X` only asks for it.
                        wanted = word != "-v"
                        skip -= not word.startswith("-")
                    else:
                        wanted = wrapped = word in _WRAPPERS
                        skip = _WRAPPERS.get(word, 0)
                        self._note(word)
        return at

    def _case_begins(self, at: int) -> bool:
        """Is this `in` of a case and not of a for?"""
        line = re.split(r"[\n;]", self.text[:at])[-1]
        return re.search(r"(?:^|\s)case\s", line) is not None

    def _note(self, word: str) -> None:
        if _UNKNOWN not in word and word:
            self.programs.add(word)

    def _list(self, at: int, name: str) -> int:
        """Behind NAME=( the words of an array; the first one may be a command."""
        if self.text[at : at + 1] != "(":
            return at
        at += 1
        first: set[str] = set()
        while at < len(self.text) and self.text[at] != ")":
            if self.text[at] in " \t\n":
                at += 1
            elif self.text[at] == "#":
                at = _line_end(self.text, at)
            else:
                before = at
                word, at = self._word(at)
                at += at == before
                if word and _UNKNOWN not in word and name not in first:
                    first.add(name)
                    self._arrays.setdefault(name, set()).add(word)
        return at + 1

    def _redirection(self, at: int) -> int:
        """The operator and its target."""
        operator = re.compile(r"<<<|<<-?|[<>]&?|>>|>\|").match(self.text, at)
        assert operator is not None
        at = operator.end() + (self.text[operator.end() : operator.end() + 1] == ">")
        while self.text[at : at + 1] in (" ", "\t"):
            at += 1
        word, at = self._word(at)
        if operator[0] in ("<<", "<<-"):
            self._documents.append((word, operator[0] == "<<-"))
        return at

    def _skip_documents(self, at: int) -> int:
        for word, tabs in self._documents:
            while at < len(self.text):
                end = _line_end(self.text, at)
                line, at = self.text[at:end], end + 1
                if (line.lstrip("\t") if tabs else line) == word:
                    break
        self._documents = []
        return at

    def _word(self, at: int) -> tuple[str, int]:
        """A word without its quotes, and the place behind it; at least one character."""
        text, out, start = self.text, "", at
        while at < len(text) and (at == start or text[at] not in " \t\n;&|()<>"):
            char = text[at]
            if char == "'":
                close = text.find("'", at + 1)
                close = len(text) if close < 0 else close
                out, at = out + text[at + 1 : close], close + 1
            elif char == '"':
                at += 1
                while at < len(text) and text[at] != '"':
                    if text[at] in "$`":
                        out, at = out + _UNKNOWN, self._expansion(at)
                    else:
                        at += text[at] == "\\"
                        out, at = out + text[at : at + 1], at + 1
                at += 1
            elif char in "$`":
                out, at = out + _UNKNOWN, self._expansion(at)
            elif char == "\\":
                out, at = out + text[at + 1 : at + 2], at + 2
            else:
                out, at = out + char, at + 1
        return out, at

    def _expansion(self, at: int) -> int:
        """Behind a $x, ${x}, $(x), $((x)) or `x`; the commands in it are looked at."""
        text = self.text
        if text[at] == "`":
            close = text.find("`", at + 1)
            close = len(text) if close < 0 else close
            self.programs |= _Script(text[at + 1 : close]).found()
            return close + 1
        if text.startswith("$((", at):
            close = text.find("))", at)
            return len(text) if close < 0 else close + 2
        if text.startswith("$(", at):
            return self._commands(at + 2, ")")
        if text.startswith("${", at):
            at += 2
            while at < len(text) and text[at] != "}":
                at = self._expansion(at) if text[at] in "$`" else at + 1 + (text[at] == "\\")
            return at + 1
        match = re.compile(r"\$(?:\w+|.)?").match(text, at)
        return match.end() if match else at + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def programs_in_shell(text: str) -> set[str]:
    """Names as they are written: with a path where there is one."""
    return _Script(text).found()


def programs_in_makefile(text: str) -> set[str]:
    """Of the recipes; a variable of one word is followed."""
    joined = text.replace("\\\n", " ")
    defined = {name: value.strip() for name, value in _MAKE_DEFINED.findall(joined)}
    found: set[str] = set()
    for line in joined.splitlines():
        if line.startswith("\t"):
            found |= programs_in_shell(_of_recipe(line.lstrip("\t@-+"), defined))
        for words in re.findall(r"\$\(shell ([^()]*)\)", line):
            found |= programs_in_shell(_of_recipe(words, defined))
    return found


def _of_recipe(line: str, defined: dict[str, str]) -> str:
    line = line.replace("$$", "\1")
    for _ in range(8):
        line = _MAKE_REFERENCE.sub(lambda match: defined.get(match[1], "\2"), line)
    return line.replace("\1", "$").replace("\2", "${x}")
