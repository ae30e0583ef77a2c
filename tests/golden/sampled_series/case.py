# SPDX-License-Identifier: Apache-2.0
"""Series of bdis, disks, cgroups, pressure and /proc, and what threads dirtied.

By hand; the trace goes from 10 s to 14 s, windows are 2 s, samples lie at 10, 11, 12 and 13 s.
  bdi 254:0, KiB: dirty 4096, 8192, 2048, 0; writeback 0, 2048, 6144, 0; thresh 16384 twice, then
    8192; dirtied 10000, 20240, 20240, 20140; written 8000, 10048, 18240, 24384; bandwidth 102400,
    51200, 20480, 10240 KiB/s
  window at 10: dirty (4096 + 8192) / 2 = 6144, writeback 1024, most 8192 + 2048 = 10240; in the
    second between its samples 10240 were dirtied and 2048 written; bandwidth 76800
  window at 12: dirty 1024, writeback 3072, most 2048 + 6144 = 8192; in two seconds -100 dirtied and
    8192 + 6144 written: -50 and 7168 a second; bandwidth 15360
  what cgroup 27 writes to it: samples at 11 and 12 s; one has no sample before it: no rates
  bdi 7:0 never had a page: no row
  vda from 10 to 11 s: 10 writes of 10240 sectors, 900 ms busy, 2000 ms of requests; from 11 to
    12 s: 2 reads of 16 sectors, 50 ms busy, 10 ms of requests. loop0 did nothing
  window at 10 of throughput_by_device: (900 + 50) ms of 2 s = 0.475; in that at 12 there is no
    later sample; 12 sectors are completed in the first, 16 in the second
  vmstat: nr_dirty (5 + 3) / 2 = 4 pages, pgscan_kswapd 7 pages in a second; meminfo tells no more
  a curve says 0 behind its last sample, where nothing is known; that of bdis a ns later
  cgroup 27 from 10 to 11 s: 8192 + 4096 bytes written by two disks, 400 ms of some, 100 ms of full
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_S = 1_000_000_000
_MS = 1_000_000
_KIB = 1 << 10
_PAGE_KEYS = ("Writeback", "Reclaimable", "DirtyThresh", "Dirtied", "Written")


def _bdi(prefix: str, *values: int) -> str:
    *pages, bandwidth = values
    keys = zip(_PAGE_KEYS, pages, strict=True)
    lines = [f"{prefix}{key + ':':15}{value:10} kB" for key, value in keys]
    if prefix == "Bdi":
        lines += ["DirtyThresh:   65536 kB", "BackgroundThresh:   32768 kB"]
    lines += [f"{prefix}WriteBandwidth: {bandwidth} kBps", "b_dirty:   1", "state:    5"]
    return "\n".join(lines) + "\n"


def _series(samples: dict[int, dict[str, str]]) -> str:
    return "".join(
        f"# ts={second * _S}\n" + "".join(f"== {name}\n{text}" for name, text in parts.items())
        for second, parts in samples.items()
    )


def _stat(*numbers: int) -> str:
    assert len(numbers) == 11
    return "".join(f"{number:9}" for number in numbers) + "\n"


def _psi(some: int, full: int | None = None) -> str:
    text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={some}\n"
    return text if full is None else f"{text}full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"


_IDLE = _bdi("Bdi", 0, 0, 16384, 7, 7, 102400)
_LOOP = _stat(5, 0, 40, 1, 0, 0, 0, 0, 0, 1, 1)
_CGROUP_10 = {
    "27/memory.stat": "anon 8192\nfile 65536\nfile_dirty 4096\nfile_writeback 0\n",
    "27/memory.events": "low 0\nhigh 0\nmax 3\noom 0\n",
    "27/memory.current": "131072\n",
    "27/memory.max": "262144\n",
    "27/io.stat": "254:0 rbytes=0 wbytes=4096 rios=0 wios=1\n254:16 rbytes=512 wbytes=4096\n",
    "27/io.pressure": _psi(0, 0),
}
_CGROUP_11 = {
    "27/memory.stat": "anon 8192\nfile 65536\nfile_dirty 12288\nfile_writeback 8192\n",
    "27/memory.events": "low 0\nhigh 0\nmax 5\noom 0\n",
    "27/memory.current": "196608\n",
    "27/memory.max": "262144\n",
    "27/io.stat": "254:0 rbytes=0 wbytes=12288 rios=0 wios=3\n254:16 rbytes=512 wbytes=8192\n",
    "27/io.pressure": _psi(400_000, 100_000),
}
_FILES = {
    "bdi.samples": _series(
        {
            10: {"254:0": _bdi("Bdi", 0, 4096, 16384, 10000, 8000, 102400), "7:0": _IDLE},
            11: {"254:0": _bdi("Bdi", 2048, 8192, 16384, 20240, 10048, 51200), "7:0": _IDLE},
            12: {"254:0": _bdi("Bdi", 6144, 2048, 8192, 20240, 18240, 20480), "7:0": _IDLE},
            13: {"254:0": _bdi("Bdi", 0, 0, 8192, 20140, 24384, 10240), "7:0": _IDLE},
        }
    ),
    "wb.samples": _series(
        {
            11: {"254:0/27": _bdi("Wb", 0, 1024, 4096, 1024, 0, 102400)},
            12: {"254:0/27": _bdi("Wb", 1024, 0, 4096, 1024, 512, 1024)},
        }
    ),
    "block.before": f"== loop0\ndev 7:0\n{_LOOP}== vda\ndev 254:0\n{_LOOP}",
    "block.samples": _series(
        {
            10: {"loop0": _LOOP, "vda": _stat(100, 0, 800, 50, 10, 0, 2048, 90, 0, 500, 1000)},
            11: {"loop0": _LOOP, "vda": _stat(100, 0, 800, 50, 20, 0, 12288, 190, 4, 1400, 3000)},
            12: {"loop0": _LOOP, "vda": _stat(102, 0, 816, 52, 20, 0, 12288, 190, 0, 1450, 3010)},
        }
    ),
    "psi.samples": _series(
        {
            10: {"cpu": _psi(7), "io": _psi(1000, 500), "memory": _psi(0, 0)},
            # 2 ms more than between the two clocks.
            11: {"cpu": _psi(7), "io": _psi(501_000, 250_500), "memory": _psi(1_002_000, 900_000)},
        }
    ),
    "cgroup.samples": _series({10: _CGROUP_10, 11: _CGROUP_11}),
    "cgroups": "     27 /sys/fs/cgroup/small\n",
    "vmstat.before": "nr_dirty 1\npgscan_kswapd 2\n",
    "vmstat.samples": (
        f"# ts={10 * _S}\nnr_dirty 5\npgscan_kswapd 2\n"
        f"# ts={11 * _S}\nnr_dirty 3\npgscan_kswapd 9\n"
    ),
    "meminfo.samples": f"# ts={10 * _S}\nDirty:   20 kB\n# ts={11 * _S}\nDirty:   12 kB\n",
    "zoneinfo.samples": (
        f"# ts={10 * _S}\nNode 0, zone   Normal\n  per-node stats\n      nr_dirty     5\n"
        "  pages free     31\n        min      3\n        low      5\n        high     7\n"
        "        spanned  90\n        present  80\n        managed  70\n"
        "Node 0, zone  Movable\n  pages free     0\n        min      0\n        managed  0\n"
    ),
    "task_io": (
        "start ts=9000000000 tid=7 tgid=7 write_bytes=4096 cancelled_write_bytes=0 comm=sh\n"
        "exit ts=11000000000 tid=23 tgid=23 write_bytes=94208 cancelled_write_bytes=8192"
        " write_char_bytes=94000 read_bytes=0 read_char_bytes=17 blkio_delay_ns=31"
        " swapin_delay_ns=0 comm=a comm=\\\\n\\n\n"
        "end ts=14100000000 tid=7 tgid=7 write_bytes=12288 cancelled_write_bytes=0 comm=sh\n"
    ),
    "ls-files": "   131 -rw-r--r-- 1 root root 90112 Nov 23 08:00 copy\n",
}


def make(folder: Path) -> None:
    for name, text in _FILES.items():
        (folder / name).write_text(text)
    trace = Trace(formats("block_rq_complete"))
    for ts, sectors, rwbs in ((10 * _S, 12, "W"), (12_500 * _MS, 16, "R"), (14 * _S - 1, 0, "FF")):
        values = {"dev": 254 << 20, "sector": 8, "nr_sector": sectors, "rwbs": rwbs}
        trace.event(0, ts, 7, "block_rq_complete", values)
    trace.write(folder / "trace.dat")


def _of_bdi(
    second: int,
    cgroup: int | None,
    count: int,
    kib: tuple[int, ...],
    rates: tuple[float | None, ...],
) -> Expected:
    dirty, writeback, most, thresh, bandwidth = kib
    dirtied, written = (None if rate is None else rate * _KIB for rate in rates)
    return {
        "window_start_ns": second * _S,
        "bdi": "254:0",
        "cgroup_ino": cgroup,
        "samples_count": count,
        "dirty_bytes": float(dirty * _KIB),
        "writeback_bytes": float(writeback * _KIB),
        "wb_dirty_max_bytes": most * _KIB,
        "wb_thresh_bytes": float(thresh * _KIB),
        "dirtied_bytes_per_s": dirtied,
        "written_bytes_per_s": written,
        "write_bw_bytes_per_s": float(bandwidth * _KIB),
    }


def _of_disk(
    second: int,
    counts: tuple[int, int],
    rates: tuple[float, float],
    use: tuple[float, float],
    mean: float,
) -> Expected:
    return {
        "window_start_ns": second * _S,
        "disk": "vda",
        "device": "254:0",
        "reads_count": counts[0],
        "writes_count": counts[1],
        "read_bytes_per_s": rates[0],
        "written_bytes_per_s": rates[1],
        "utilisation_ratio": use[0],
        "depth_mean_count": use[1],
        "mean_request_bytes": mean,
    }


def _moved(name: str, object_: str | None, first: int, last: int, unit: str) -> Expected:
    low, high = sorted((first, last))
    return {
        "object": object_, "name": name, "unit": unit, "samples_count": 2, "least_value": low,
        "most_value": high, "spread_value": high - low, "mean_value": (low + high) / 2,
    }  # fmt: skip


_TRACKS = """
SELECT ts, track, value, unit FROM tl_{} WHERE track GLOB '*{}' ORDER BY ts
"""


def _curve(view: str, track: str, unit: str, points: list[tuple[float, float]]) -> Check:
    rows: list[Expected] = [
        {
            "ts": round(second * _S),
            "track": f"Writeback/{track}",
            "value": float(value),
            "unit": unit,
        }
        for second, value in points
    ]
    return Check(sql=_TRACKS.format(view, track), rows=rows)


CHECKS = [
    Check(
        query="bdi_samples",
        rows=[
            _of_bdi(10, None, 2, (6144, 1024, 10240, 16384, 76800), (10240.0, 2048.0)),
            _of_bdi(10, 27, 1, (1024, 0, 1024, 4096, 102400), (None, None)),
            _of_bdi(12, None, 2, (1024, 3072, 8192, 8192, 15360), (-50.0, 7168.0)),
            _of_bdi(12, 27, 1, (0, 1024, 1024, 4096, 1024), (0.0, 512.0)),
        ],
    ),
    Check(
        query="block_samples",
        rows=[
            _of_disk(10, (0, 10), (0.0, 5_242_880.0), (0.9, 2.0), 524_288.0),
            _of_disk(12, (2, 0), (8192.0, 0.0), (0.05, 0.01), 4096.0),
        ],
    ),
    Check(
        query="throughput_by_device",
        rows=[
            {
                "window_start_ns": 10 * _S,
                "written_bytes": 6144,
                "mean_request_bytes": 6144.0,
                "utilisation_ratio": 0.475,
                "utilisation_basis": "samples",
            },
            {
                "window_start_ns": 12 * _S,
                "written_bytes": 0,
                "mean_request_bytes": 8192.0,
                "utilisation_ratio": None,
                "utilisation_basis": None,
            },
        ],
    ),
    Check(
        query="cgroup_samples",
        rows=[
            {
                "window_start_ns": 10 * _S,
                "cgroup_ino": 27,
                "path": "/sys/fs/cgroup/small",
                "dirty_bytes": 8192.0,
                "writeback_bytes": 4096.0,
                "memory_bytes": 163_840.0,
                "memory_max_bytes": 262_144,
                "max_events_count": 2,
                "written_bytes_per_s": 12_288.0,
                "io_some_ratio": 0.4,
                "io_full_ratio": 0.1,
                "memory_full_ratio": None,
            },
        ],
    ),
    Check(
        query="pressure",
        rows=[
            {
                "window_start_ns": 10 * _S,
                "resource": "cpu",
                "some_ns": 0,
                "full_ns": None,
                "some_ratio": 0.0,
                "full_ratio": None,
            },
            {
                "window_start_ns": 10 * _S,
                "resource": "io",
                "some_ns": 500 * _MS,
                "full_ns": 250 * _MS,
                "some_ratio": 0.5,
                "full_ratio": 0.25,
            },
            {
                "window_start_ns": 10 * _S,
                "resource": "memory",
                "some_ns": 1002 * _MS,
                "full_ns": 900 * _MS,
                "some_ratio": 1.0,
                "full_ratio": 0.9,
            },
        ],
    ),
    Check(
        query="samples",
        keep=lambda row: row["source"] in ("psi", "vmstat", "meminfo", "zoneinfo"),
        rows=[
            _moved("some_total", "io", _MS, 501 * _MS, "ns"),
            _moved("full_total", "io", _MS // 2, 250_500_000, "ns"),
            _moved("some_total", "memory", 0, 1002 * _MS, "ns"),
            _moved("full_total", "memory", 0, 900 * _MS, "ns"),
            _moved("nr_dirty", None, 5, 3, "pages"),
            _moved("pgscan_kswapd", None, 2, 9, "count"),
            _moved("Dirty", None, 20 * _KIB, 12 * _KIB, "bytes"),
        ],
    ),
    Check(
        query="vmstat_samples",
        rows=[
            {
                "window_start_ns": 10 * _S,
                "source": "vmstat",
                "name": name,
                "samples_count": 2,
                "level_bytes": level,
                "gained_pages_per_s": gained,
                "gained_bytes_per_s": None if gained is None else gained * 4096,
            }
            for name, level, gained in (
                ("nr_dirty", 4 * 4096.0, None),
                ("pgscan_kswapd", None, 7.0),
            )
        ],
    ),
    _curve(
        "bdi_sample",
        "Backing devices/254:0/written",
        "bytes/s",
        [(10, 2048 * _KIB), (11, 8192 * _KIB), (12, 6144 * _KIB), (13 + 1e-9, 0)],
    ),
    _curve(
        "bdi_sample",
        "Backing devices/254:0 cgroup 27/dirty",
        "bytes",
        [(11, 1 << 20), (12, 0), (12 + 1e-9, 0)],
    ),
    _curve("block_sample", "Disks/vda/utilisation", "ratio", [(10, 0.9), (11, 0.05), (12, 0)]),
    _curve(
        "cgroup_sample",
        "Cgroups/cgroup 27 \\/sys\\/fs\\/cgroup\\/small/io full",
        "ratio",
        [(10, 0.1), (11, 0)],
    ),
    _curve("pressure", "Pressure/io full", "ratio", [(10, 0.25), (11, 0)]),
    Check(
        sql="SELECT ts, value FROM tl_vmstat WHERE track GLOB '*/nr_dirty'",
        rows=[{"ts": second * _S, "value": value} for second, value in ((10, 1), (10, 5), (11, 3))],
    ),
    Check(
        sql="SELECT ts, track, value FROM tl_zone",
        rows=[
            {"ts": 10 * _S, "track": f"Writeback/Zones/node 0 Normal/{name}", "value": value}
            for name, value in (("free", 31), ("min", 3), ("low", 5), ("high", 7))
        ],
    ),
    Check(
        sql="SELECT * FROM sidecar_task_io WHERE sample = 'exit'",
        rows=[
            {
                "sample": "exit",
                "ts": 11 * _S,
                "tid": 23,
                "tgid": 23,
                "comm": "a comm=\\n\n",
                "write_bytes": 94_208,
                "cancelled_write_bytes": 8192,
                "write_char_bytes": 94_000,
                "read_bytes": 0,
                "read_char_bytes": 17,
                "blkio_delay_ns": 31,
                "swapin_delay_ns": 0,
                "freepages_delay_ns": None,
                "thrashing_delay_ns": None,
            },
        ],
    ),
    Check(
        sql="SELECT sample, tid, write_bytes FROM raw_task_io WHERE sample <> 'exit'",
        rows=[
            {"sample": "start", "tid": 7, "write_bytes": 4096},
            {"sample": "end", "tid": 7, "write_bytes": 12_288},
        ],
    ),
    Check(
        sql="SELECT inode, bytes, name FROM raw_listed_file",
        rows=[{"inode": 131, "bytes": 90_112, "name": "copy"}],
    ),
]
