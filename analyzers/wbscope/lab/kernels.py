# SPDX-License-Identifier: Apache-2.0
"""What a run is set up with: disks, kernels, programs."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.cache import own_folder
from wbscope.base.errors import InputError, SetupError
from wbscope.base.outputs import private_folder
from wbscope.base.system import dying_with_us


def find(name: str, package: str) -> str:
    """Its path; sbin is looked at too, which users may not have in theirs.

    Raises: SetupError with the Debian package that has it.
    """
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise SetupError("missing-program", name, "is not installed", fix=f"apt install {package}")
    return path


def call(
    command: Sequence[str], package: str, *, given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """To its end, whatever its exit code is; it dies with this process.

    Raises: SetupError where it is not installed.
    """
    return subprocess.run(
        [find(command[0], package), *command[1:]],
        cwd=folder,
        input=given,
        capture_output=True,
        check=False,
        preexec_fn=dying_with_us(),
    )


def output_of(
    command: Sequence[str], package: str, *, given: bytes = b"", folder: Path | None = None
) -> bytes:
    """What it printed.

    Raises: SetupError where it is not installed, or fails, with its last line.
    """
    done = call(command, package, given=given, folder=folder)
    if done.returncode:
        raise SetupError(
            "program-failed",
            " ".join([*command[:1], *command[-2:]]),
            f"ended with {done.returncode}: {last_line(done.stderr or done.stdout)}",
            fix="see what the program says; a package may have another name in this suite",
        )
    return done.stdout


def last_line(text: bytes | str) -> str:
    """Of what a program said."""
    told = text.decode(errors="replace") if isinstance(text, bytes) else text
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was said"


@dataclass(frozen=True)
class Kernel:
    """Where the kernel comes from; exactly one of the first five is given.

    debian   a suite, such as bookworm; `package` names the package in it
    folder   an unpacked package: vmlinuz and lib/modules anywhere below
    image    a kernel image, with `modules` (a folder that has lib/modules) or none
    here     this machine as it runs
    ssh      a host, as ssh names it
    """

    debian: str | None = None
    package: str = "linux-image-cloud-amd64"
    folder: str | None = None
    image: str | None = None
    modules: str | None = None
    here: bool = False
    ssh: str | None = None

    @property
    def is_guest(self) -> bool:
        """Whether a guest is booted for each run."""
        return not self.here and self.ssh is None

    def __str__(self) -> str:
        if self.debian is not None:
            return f"{self.package} of {self.debian}"
        return self.folder or self.image or (f"ssh {self.ssh}" if self.ssh else "this machine")


@dataclass(frozen=True)
class Disk:
    """A disk of a guest; 0 = no limit.  Limits hold for writes, read_ ones for reads.

    at   its mount point's name: /data is "data"; "" = not mounted
    """

    at: str
    size_kib: int = 2 << 20
    filesystem: str = "ext4"
    bytes_per_s: int = 0
    iops: int = 0
    read_bytes_per_s: int = 0
    read_iops: int = 0
    mkfs: tuple[str, ...] = ()
    options: str = ""


@dataclass(frozen=True)
class Setup:
    """Everything that a run is made with; what is not given is the kernel's own.

    data      where the workload writes on this machine or a host; guests have disks
    cgroups   name -> file -> value, as in {"slow": {"memory.high": "64M"}}
    prepare   shell text that runs before the recording
    workload  shell text that is recorded
    """

    kernel: Kernel
    workload: str
    prepare: str = ""
    memory_kib: int = 512 << 10
    cpus: int = 2
    disks: tuple[Disk, ...] = ()
    swap_kib: int = 0
    data: str | None = None
    sysctls: dict[str, str] = field(default_factory=dict)
    cgroups: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    append: str = ""
    profile: str = "stalls"
    events: tuple[str, ...] = ()
    sync: bool = False
    buffer_kib: int | None = None


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
