# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of each thread that exits: taskstats, over generic netlink.

Fields keep their places from version to version, except in version 15 (Linux 6.14), where one
or two numbers were put in behind each sum of delays; version 16 has them at the end.  The
struct's own ac_pid, which must be the number beside it, tells which of the three it is.

Source: include/uapi/linux/taskstats.h, Documentation/accounting/taskstats.rst.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.errors import SetupError

_POSSIBLE = Path("/sys/devices/system/cpu/possible")
_NETLINK_GENERIC = 16
_SO_RCVBUFFORCE = 33
_ROOM_BYTES = 8 << 20  # some 5,000 exits that are not read yet
_MOST_BYTES = 64 << 10

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_GENERIC = struct.Struct("=BBH")  # struct genlmsghdr
_ATTRIBUTE = struct.Struct("=HH")  # struct nlattr
_TYPE_MASK = 0x3FFF
_REQUEST, _ACK = 1, 4
_ERROR = 2
_CONTROL, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_GET, _NEW, _REGISTER = 1, 2, 3  # TASKSTATS_CMD_ and TASKSTATS_CMD_ATTR_REGISTER_CPUMASK
_PID, _STATS, _AGGR_PID = 1, 3, 4  # TASKSTATS_TYPE_

_WHY = {
    errno.ENOENT: "this kernel has no taskstats (CONFIG_TASKSTATS), or this is a container",
    errno.EPERM: "taskstats wants CAP_NET_ADMIN",
    errno.EACCES: "taskstats wants CAP_NET_ADMIN",
    errno.EINVAL: "taskstats is refused in a pid or user namespace (a container)",
    errno.EPROTONOSUPPORT: "generic netlink is not to be had (a container)",
    errno.EAFNOSUPPORT: "netlink is not to be had (a container)",
}


@dataclass(frozen=True)
class ExitedThread:
    """Totals of its life; what this kernel's version does not have is None."""

    tid: int
    tgid: int | None
    comm: str
    life_ns: int
    version: int
    write_bytes: int
    cancelled_write_bytes: int
    write_char_bytes: int
    read_bytes: int
    read_char_bytes: int
    blkio_delay_ns: int
    swapin_delay_ns: int
    freepages_delay_ns: int | None
    thrashing_delay_ns: int | None


class ExitListener:
    """Registered on all CPUs; the kernel forgets it when its socket is closed, or it is killed.

    has_room  for some thousands of exits that are not read yet

    Raises: SetupError when taskstats is refused, with the reason.
    """

    def __init__(self) -> None:
        self.has_room = False
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
        except OSError as error:
            raise _refused(error) from error
        try:
            with contextlib.suppress(OSError):  # not in a container: the usual room then
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
                self.has_room = True
            self._socket.bind((0, 0))
            self._socket.settimeout(1.0)
            self._register(self._family())
            self._socket.setblocking(False)
        except (OSError, struct.error) as error:
            self._socket.close()
            raise _refused(error) from error

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> Iterator[bytes]:
        """The messages that are there; does not wait.

        Raises: OSError with ENOBUFS when more threads exited than there was room for.
        """
        while True:
            try:
                data, (sender, _) = self._socket.recvfrom(_MOST_BYTES)
            except BlockingIOError:
                return
            if sender == 0:  # the kernel; other processes can send here, too
                yield data

    def close(self) -> None:
        self._socket.close()

    def _family(self) -> int:
        self._socket.send(_message(_CONTROL, _GET_FAMILY, _attribute(_FAMILY_NAME, b"TASKSTATS\0")))
        for kind, body in _messages(self._socket.recv(_MOST_BYTES)):
            _check(kind, body)
            for attribute, value in _attributes(body[_GENERIC.size :]):
                if attribute == _FAMILY_ID:
                    return int(struct.unpack_from("=H", value)[0])
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    def _register(self, family: int) -> None:
        cpus = _POSSIBLE.read_text().strip().encode() + b"\0"
        asked = _message(family, _GET, _attribute(_REGISTER, cpus), _REQUEST | _ACK)
        self._socket.send(asked)
        while True:
            for kind, body in _messages(self._socket.recv(_MOST_BYTES)):
                if kind == _ERROR:  # also what says that all is well; exits may come before
                    return _check(kind, body)


def parse_message(data: bytes) -> Iterator[ExitedThread]:
    """Threads that one message tells of; what is none of them, or cut short, is left out."""
    for kind, body in _messages(data):
        if kind <= _CONTROL or len(body) < _GENERIC.size or body[0] != _NEW:
            continue
        for attribute, value in _attributes(body[_GENERIC.size :]):
            if attribute != _AGGR_PID:  # the other kind sums up a process
                continue
            inner = dict(_attributes(value))
            pid, stats = inner.get(_PID, b""), inner.get(_STATS, b"")
            if len(pid) == struct.calcsize("=I"):
                thread = _thread(int(struct.unpack("=I", pid)[0]), stats)
                if thread is not None:
                    yield thread


class _Places:
    """Where the fields are: `more` numbers stand behind each sum of delays."""

    def __init__(self, more: int) -> None:
        step = 8 * more
        self.blkio = 40 + step
        self.swapin = 56 + 2 * step
        self.comm = 80 + 3 * step
        self.pid = self.comm + 48
        self.etime = self.comm + 64
        self.chars = self.comm + 136
        self.bytes = self.comm + 168
        self.freepages = self.comm + 240
        self.thrashing = self.freepages + 16 + step
        self.tgid = self.thrashing + 32 + 2 * step


_PLACES = (_Places(0), _Places(2), _Places(1))
_COMM_BYTES = 32
_US_NS = 1000
_U16, _U32, _U64 = struct.Struct("=H"), struct.Struct("=I"), struct.Struct("=Q")
_THREE = struct.Struct("=QQQ")
# Versions that the last fields came with.
_THRASHING, _TGID = 9, 12


def _thread(tid: int, stats: bytes) -> ExitedThread | None:
    def u64(place: int, since: int = 0) -> int | None:
        there = version >= since and len(stats) >= place + _U64.size
        return int(_U64.unpack_from(stats, place)[0]) if there else None

    for at in _PLACES:
        if len(stats) >= at.bytes + _THREE.size and _U32.unpack_from(stats, at.pid)[0] == tid:
            break
    else:
        return None
    version = int(_U16.unpack_from(stats)[0])
    comm = stats[at.comm : at.comm + _COMM_BYTES].partition(b"\0")[0]
    read_bytes, write_bytes, cancelled = _THREE.unpack_from(stats, at.bytes)
    has_tgid = version >= _TGID and len(stats) >= at.tgid + _U32.size
    return ExitedThread(
        tid=tid,
        tgid=int(_U32.unpack_from(stats, at.tgid)[0]) if has_tgid else None,
        comm=comm.decode("utf-8", "surrogateescape"),
        life_ns=(u64(at.etime) or 0) * _US_NS,
        version=version,
        write_bytes=write_bytes,
        cancelled_write_bytes=cancelled,
        write_char_bytes=u64(at.chars + _U64.size) or 0,
        read_bytes=read_bytes,
        read_char_bytes=u64(at.chars) or 0,
        blkio_delay_ns=u64(at.blkio) or 0,
        swapin_delay_ns=u64(at.swapin) or 0,
        freepages_delay_ns=u64(at.freepages),
        thrashing_delay_ns=u64(at.thrashing, _THRASHING),
    )


def _message(kind: int, command: int, attributes: bytes, flags: int = _REQUEST) -> bytes:
    body = _GENERIC.pack(command, 1, 0) + attributes
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each."""
    while len(data) >= _HEADER.size:
        size, kind, *_ = _HEADER.unpack_from(data)
        if not _HEADER.size <= size <= len(data):
            return
        yield kind, data[_HEADER.size : size]
        data = data[(size + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= size <= len(data):
            return
        yield kind & _TYPE_MASK, data[_ATTRIBUTE.size : size]
        data = data[(size + 3) & ~3 :]


def _check(kind: int, body: bytes) -> None:
    """Raises: OSError for what the kernel refuses."""
    if kind == _ERROR:
        code = -int(struct.unpack_from("=i", body)[0])
        if code:
            raise OSError(code, os.strerror(code))


def _refused(error: OSError | struct.error) -> SetupError:
    code = error.errno if isinstance(error, OSError) else None
    why = _WHY.get(code or 0) or f"taskstats is refused: {error}"
    return SetupError("no-taskstats", "taskstats", why)
