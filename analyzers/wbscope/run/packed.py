# SPDX-License-Identifier: Apache-2.0
"""What the first bytes of a file tell: packets of Perfetto, or how it is packed."""

from __future__ import annotations

__all__ = ["START_BYTES", "foreign", "is_packets", "is_tar", "packing"]

START_BYTES = 512

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_STREAMS = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
}
# bzip2: the size of its blocks, then pi, or an end where nothing is in it.
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
_TAR_MAGIC = (257, b"ustar")
_PACKET_TAG = 0x0A  # Trace.packet, protos/perfetto/trace/trace.proto
_PCAPNG_MAGIC = b"\n\r\r\n"
# Written by a machine of this byte order, and of the other.
_PERF_MAGICS = (b"PERFILE2", b"2ELIFREP")
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b"


def packing(start: bytes) -> str | None:
    """How a file that begins so is packed: gzip, xz, zstd, bzip2, zip, tar; None if it is not."""
    if start.startswith(_ZIP):
        return "zip"
    name = next((name for magic, name in _STREAMS.items() if start.startswith(magic)), None)
    if name == "bzip2" and not start[4:10].startswith(_BZIP2_BLOCKS):
        name = None
    return name or ("tar" if is_tar(start) else None)


def is_tar(start: bytes) -> bool:
    """Whether a tar begins so."""
    at, magic = _TAR_MAGIC
    return start[at : at + len(magic)] == magic


def foreign(start: bytes, quoted: str) -> tuple[str, str | None] | None:
    """What a file of a known other program is, and the command that makes text of it.

    quoted  the file, as a word of a shell
    """
    if start.startswith(_PERF_MAGICS):
        told = "is a perf.data, which only perf reads; wanted the text of perf script"
        return told, f"perf script -i {quoted} --ns | wbscope report -"
    if start.startswith(_PCAPNG_MAGIC):
        return "holds packets of a network (pcapng), wanted a trace of the kernel", None
    return None


def is_packets(start: bytes) -> bool:
    """A text can start with the same byte, a newline, but has no other control characters."""
    if start[:1] != bytes([_PACKET_TAG]) or start.startswith(_PCAPNG_MAGIC):
        return False
    return any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in start)
