#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build a wheel whose program runs on any Linux with glibc 2.28 or newer.

usage: make_wheel.py [PROCESSOR...] [-o FOLDER]     x86_64, aarch64; this machine's without one

Zig (of the Python package ziglang) compiles, for this machine as for another. What it links are
Debian's static libraries of that processor, fetched and unpacked in build/wheel; the machine's
own packages stay as they are. auditwheel says whether the wheel keeps what its name promises.
Exit code 5: a tool or a package cannot be had.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from fresh_settings import mirror
from fresh_suites import MIRROR

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/wheel-parts"
TOOLS = ROOT / "tools/locks/release.txt"
SUITE = "bookworm"
GLIBC = "2.28"
PLATFORM = "manylinux_2_28"
# Debian's name of each processor.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES = (
    "libprotozero-dev", "libsqlite3-dev", "libtraceevent-dev", "libxxhash-dev", "libzstd-dev",
    "zlib1g-dev",
)  # fmt: skip
# Texts that the copyright files of these packages name; every Debian has them.
LICENCES = ("Apache-2.0", "GPL-2", "LGPL-2.1")
# elf.h
_PT_DYNAMIC, _PT_GNU_STACK, _PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
_DT_FLAGS_1, _DF_1_NOW, _DF_1_PIE = 0x6FFFFFFB, 0x1, 0x08000000
# __stack_chk_guard of AArch64; mov %fs:0x28 to any register on x86-64
_GUARDED = rb"\0__stack_chk_(?:fail|guard)\0|\x64[\x48\x4c]\x8b.\x25\x28\0\0\0"
_FORTIFIED = rb"\0__(?:mem|str|v?f?s?n?printf|read|vs)\w*_chk\0"
_LICENCE_FOLDER = Path("/usr/share/common-licenses")


class BuildError(Exception):
    """A step did not end well; told in one line."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("processor", nargs="*", help=f"of {', '.join(DEBIAN)}")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/dist")
    arguments = parser.parse_args()
    try:
        tools = tool_folder()
        for processor in arguments.processor or [platform.machine()]:
            if processor not in DEBIAN:
                raise BuildError(f"no wheel for {processor}, only for {', '.join(DEBIAN)}")
            print(f"wheel: {build(processor, tools, arguments.output)}")
    except BuildError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 5
    return 0


def build(processor: str, tools: Path, output: Path) -> Path:
    """The wheel for a processor, in the output folder."""
    folder = WORK / processor
    root = static_libraries(DEBIAN[processor], folder)
    made = folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    # A build folder of its own: scikit-build-core keeps that of the editable one as it is.
    settings = {
        "build-dir": str(folder / "cmake"),
        "cmake.define.CMAKE_TOOLCHAIN_FILE": str(ROOT / "tools/zig.cmake"),
        "cmake.define.WBSCOPE_COPYRIGHTS": str(copyrights(root, folder / "copyrights")),
        "install.strip": "false",
    }
    settings["cmake.define.WBSCOPE_SBOM"] = str(sbom(tools, root, folder))
    settings["cmake.define.WBSCOPE_MANUAL"] = str(manual(tools, folder / "man"))
    words = [f"--config-settings={name}={value}" for name, value in settings.items()]
    library = next((root / "usr/lib").glob("*/pkgconfig"))
    variables = {
        "WBSCOPE_ZIG": str(next(tools.glob("lib/python*/site-packages/ziglang/zig"))),
        "WBSCOPE_TARGET": f"{processor}-linux-gnu.{GLIBC}",
        "PKG_CONFIG_LIBDIR": str(library),
        "PKG_CONFIG_SYSROOT_DIR": str(root),
        "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig"),
    }
    pip = [str(tools / "bin/pip"), "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip.append("--no-build-isolation")
    run([*pip, *words, f"--wheel-dir={made}", str(ROOT)], variables)
    built = one_wheel(made)
    tags = [f"--platform-tag=linux_{processor}", "--remove"]
    run([str(tools / "bin/wheel"), "tags", *tags, str(built)])
    check_libc(one_wheel(made), tools)
    with zipfile.ZipFile(one_wheel(made)) as wheel:
        (program,) = (name for name in wheel.namelist() if name.endswith("/scripts/wbscope-ingest"))
        check_hardened(wheel.read(program))
    # `auditwheel repair` would bring nothing along, and knows this machine's processor only.
    run([str(tools / "bin/wheel"), "tags", f"--platform-tag={PLATFORM}_{processor}", "--remove",
         str(one_wheel(made))])  # fmt: skip
    output.mkdir(parents=True, exist_ok=True)
    named = one_wheel(made)
    return Path(shutil.copy2(named, output / named.name))


def tool_folder() -> Path:
    """A virtual environment with the tools, of the very files that the list has."""
    folder = WORK / "tools"
    stamp = folder / "installed"
    wanted = TOOLS.read_text(encoding="utf-8")
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--require-hashes", "-r", str(TOOLS)])
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def static_libraries(architecture: str, folder: Path) -> Path:
    """Debian's development packages of an architecture, unpacked; without shared libraries."""
    root, apt = folder / "root", folder / "apt"
    if root.is_dir():
        return root
    shutil.rmtree(apt, ignore_errors=True)
    for name in ("lists", "cache/archives/partial", "etc/preferences.d", "debs"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    line = f"deb [signed-by={key}] {mirror(SUITE) or MIRROR} {SUITE} main\n"
    (apt / "etc/sources.list").write_text(line, encoding="utf-8")
    options = {
        "APT::Architecture": architecture, "APT::Architectures::": architecture,
        "Dir::Etc": apt / "etc", "Dir::Etc::sourceparts": "-", "Dir::State": apt,
        "Dir::State::lists": apt / "lists", "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
    }  # fmt: skip
    private = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run(["apt-get", "-qq", *private, "update"])
    run(["apt-get", "-qq", *private, "download", *PACKAGES], folder=apt / "debs")
    part = folder / "root.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for package in sorted((apt / "debs").glob("*.deb")):
        run(["dpkg-deb", "--extract", str(package), str(part)])
    for shared in (part / "usr/lib").rglob("*.so*"):
        shared.unlink()  # or the linker takes it
    shutil.rmtree(apt)
    part.rename(root)
    return root


def copyrights(root: Path, folder: Path) -> Path:
    """Whose work is in the program, and on what terms."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in PACKAGES:
        shutil.copy2(root / "usr/share/doc" / package / "copyright", folder / package)
    for name in LICENCES:
        shutil.copy2(_LICENCE_FOLDER / name, folder / name)
    return folder


def sbom(tools: Path, root: Path, folder: Path) -> Path:
    """What is inside, for who looks into a wheel and not into the sources."""
    made = folder / "wbscope.cdx.json"
    make = [str(ROOT / "tools/make_sbom.py"), "--inside", "--root", str(root), "-o", str(made)]
    run([str(tools / "bin/python"), *make])
    return made


def manual(tools: Path, folder: Path) -> Path:
    """Its pages, which pipx puts where man looks."""
    shutil.rmtree(folder, ignore_errors=True)
    date = run(["git", "log", "-1", "--format=%cs"]).strip()
    make = [str(ROOT / "tools/make_man.py"), "-o", str(folder), "--date", date]
    run([str(tools / "bin/python"), *make])
    return folder


def check_libc(wheel: Path, tools: Path) -> None:
    """auditwheel finds the symbols that make a wheel newer than its name says."""
    said = run([str(tools / "bin/auditwheel"), "show", str(wheel)])
    if f'"{PLATFORM}_' not in said:
        raise BuildError(f"auditwheel does not say {PLATFORM}: {' '.join(said.split())}")


def check_hardened(program: bytes) -> None:
    """The reader of strangers' files has what compiler and linker can do; by its ELF64 headers."""
    (first,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", program, first + size * n) for n in range(count)]
    by_type = {header[0]: header for header in headers}
    _, _, at, _, _, length, _, _ = by_type[_PT_DYNAMIC]
    flags = dict(struct.iter_unpack("<QQ", program[at : at + length])).get(_DT_FLAGS_1, 0)
    is_there = {
        "RELRO": _PT_GNU_RELRO in by_type,
        "a stack that is not executed": not by_type[_PT_GNU_STACK][1] & 1,
        "BIND_NOW": bool(flags & _DF_1_NOW),
        "PIE": bool(flags & _DF_1_PIE),
        # Zig's own __stack_chk_fail is inside: then by what reads the canary.
        "the stack protector": re.search(_GUARDED, program) is not None,
        "_FORTIFY_SOURCE": re.search(_FORTIFIED, program) is not None,
        # Zig has libc++, whose checks end in a trap with a text.
        "checks of the C++ library": b"__glibcxx_assert_fail" in program or b"libc++" in program,
    }
    lacking = [name for name, there in is_there.items() if not there]
    if lacking:
        raise BuildError(f"wbscope-ingest is built without {', '.join(lacking)}")


def one_wheel(folder: Path) -> Path:
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        raise BuildError(f"{folder} has {len(found)} wheels, wanted 1")
    return found[0]


def run(words: list[str], variables: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
    """What a command prints; it must end well."""
    env = {**os.environ, **(variables or {})}
    try:
        done = subprocess.run(
            words, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BuildError(f"{words[0]} is not installed") from None
    if done.returncode:
        last = re.sub(r"\n\s*\n", "\n", done.stdout + done.stderr).splitlines()[-40:]
        said = "\n".join(last)
        raise BuildError(f"{said}\n{Path(words[0]).name} ended with exit code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
