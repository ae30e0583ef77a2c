# SPDX-License-Identifier: Apache-2.0
"""What one run is made with: kernel, machine, disks, limits, workload."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Disk", "Kernel", "Setup"]


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
    profile: str = "writeback"
    events: tuple[str, ...] = ()
    sync: bool = False
    buffer_kib: int | None = None
