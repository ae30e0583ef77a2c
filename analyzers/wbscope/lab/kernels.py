# SPDX-License-Identifier: Apache-2.0
"""The kernel of a guest: fetched from Debian, unpacked, or built; with its modules."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.cache import own_folder
from wbscope.base.errors import InputError
from wbscope.base.outputs import private_folder
from wbscope.lab.programs import call, output_of
from wbscope.lab.setup import Kernel

__all__ = ["Image", "find_image", "image_in"]

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_MIRROR = "http://deb.debian.org/debian"
# A meta package leads to the kernel; newer suites split that in linux-binary- and linux-modules-.
_PART = re.compile(r"^ *(?:\|?Depends): (linux-(?:image|binary|modules)-\S+)", re.M)


@dataclass(frozen=True)
class Image:
    """A kernel that can be booted.

    modules  the folder lib/modules/RELEASE; None = everything is built in
    """

    vmlinuz: Path
    modules: Path | None

    def module_files(self, names: Iterable[str]) -> list[Path]:
        """What these need, in the order of loading; what is built in has no file.

        Raises: SetupError where kmod is missing.
        """
        if self.modules is None:
            return []
        release = self.modules.name
        if not (self.modules / "modules.dep").is_file():
            output_of(["depmod", "-b", str(_base_of(self.modules)), release], "kmod")
        found: dict[str, Path] = {}
        base = str(_base_of(self.modules))
        for name in names:
            command = ["modprobe", "-d", base, "-S", release, "--show-depends", name]
            for line in _text(call(command, "kmod").stdout).splitlines():
                word, _, rest = line.partition(" ")
                if word == "insmod":
                    path = Path(rest.split(" ")[0])
                    found.setdefault(path.name.partition(".ko")[0].replace("-", "_"), path)
        return list(found.values())

    def has_module(self, name: str) -> bool:
        """As a file, or built in; where no list tells what is built in, the boot has to."""
        if self.modules is None or self.module_files([name]):
            return True
        listed = self.modules / "modules.builtin"
        return not listed.is_file() or f"/{name}.ko" in listed.read_text(encoding="utf-8")


def unpacked(module: Path) -> bytes:
    """A module's bytes as a kernel without decompressor takes them."""
    data = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(data)
    if module.suffix == ".zst":
        return output_of(["zstd", "-qdc", str(module)], "zstd")
    return data


def find_image(kernel: Kernel, say: Callable[[str], None]) -> Image:
    """Raises: SetupError when it cannot be fetched, InputError when there is none."""
    if kernel.debian is not None:
        return image_in(_fetched(kernel.debian, kernel.package, say))
    if kernel.folder is not None:
        return image_in(Path(kernel.folder))
    assert kernel.image is not None  # a kernel has one source, and is of a guest
    if not Path(kernel.image).is_file():
        raise InputError(
            "no-kernel", kernel.image, "does not exist", fix='kernel.debian = "bookworm"'
        )
    modules = None if kernel.modules is None else _modules_in(Path(kernel.modules))
    return Image(Path(kernel.image), modules)


def image_in(folder: Path) -> Image:
    """Of an unpacked package.  Raises: InputError where it has none."""
    images = [path for path in sorted(folder.rglob("vmlinu[xz]*")) if path.is_file()]
    if not images:
        raise InputError(
            "no-kernel", str(folder), "has no vmlinuz in it or below",
            fix=f"dpkg -x linux-image-….deb {folder}",
        )  # fmt: skip
    return Image(images[0], _modules_in(folder))


def _modules_in(folder: Path) -> Path | None:
    found = [path for path in sorted(folder.rglob("lib/modules/*")) if path.is_dir()]
    return found[0] if found else None


def _base_of(modules: Path) -> Path:
    """What kmod calls the base: it has lib/modules."""
    return modules.parents[2]


def _fetched(suite: str, package: str, say: Callable[[str], None]) -> Path:
    """The packages, unpacked in the cache; asked for once.

    Raises: SetupError with what apt said.
    """
    mirror = os.environ.get("WBSCOPE_DEBIAN_MIRROR") or _MIRROR
    key = hashlib.sha256(json.dumps([mirror, suite, package]).encode()).hexdigest()[:16]
    target = own_folder("kernels") / key
    if target.is_dir():
        return target
    say(f"fetching {package} of {suite}")
    with private_folder(target) as work:
        made = work / "kernel"
        made.mkdir()
        for deb in _debs(work / "apt", mirror, suite, package):
            output_of(["dpkg", "-x", str(deb), str(made)], "dpkg")
        for unused in ("usr/share", "usr/src"):
            shutil.rmtree(made / unused, ignore_errors=True)
        try:
            os.replace(made, target)
        except OSError:
            if not target.is_dir():  # else another lab has fetched it meanwhile
                raise
    return target


def _debs(apt: Path, mirror: str, suite: str, package: str) -> list[Path]:
    """Downloads with a package list of its own, so that the machine's stays as it is."""
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "debs"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    signed = f"[signed-by={_KEYRING}] " if os.path.exists(_KEYRING) else ""
    (apt / "etc/sources.list").write_text(f"deb {signed}{mirror} {suite} main\n")
    options = {
        "Dir::Etc": apt / "etc",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": apt,
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    private = ["-q", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    output_of(["apt-get", *private, "update"], "apt")
    waiting, known = [package], set()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        output_of(["apt-get", *private, "download", name], "apt", folder=apt / "debs")
        told = output_of(["apt-cache", *private, "depends", "--important", name], "apt")
        waiting += _PART.findall(_text(told))
    return sorted((apt / "debs").glob("*.deb"))


def _text(said: bytes) -> str:
    return said.decode(errors="replace")
