# SPDX-License-Identifier: Apache-2.0
"""The recorder is not held by what it records: a disk of 256 KB/s holds all dirty pages.

As test_guest.py, which says where kernels come from. The run is on another disk, a fast one: the
machine is over its limit until long after the recording, and every task that makes a page dirty is
held with it.
"""

from __future__ import annotations

import itertools
import shutil

import pytest
from support.guest import boot, guest_folders
from support.live import Recorder

_KERNELS = ("6.1", "6.12", "7.2")
_CPUS = {"6.12": "1"}
_SLOW_BYTES_PER_S = 256_000
_LIMIT_BYTES = 16 << 20
_SECONDS = 20
_SCENARIO = f"""\
mkdir -p /p/tmp/slow
# Without a journal, for whose commit dd would wait instead.
chroot /p mkfs.ext4 -qF -O ^has_journal -E lazy_itable_init=1 /dev/vdd 64M
mount -t ext4 /dev/vdd /p/tmp/slow
echo {_LIMIT_BYTES} > /proc/sys/vm/dirty_bytes
cat > /p/tmp/writers << 'EOF'
pids=
for i in 1 2 3 4 5 6 7 8; do
  dd if=/dev/zero of=/tmp/slow/f$i bs=64k 2>/dev/null &
  pids="$pids $!"
done
sleep {_SECONDS}
kill $pids
EOF
# More events than the pages of dd alone, so that there is much to write.
for backend in tracefs trace-cmd; do
  read -r began rest < /proc/uptime
  record record --backend $backend --profile deep --no-report -o /data/$backend -- sh /tmp/writers
  echo "$backend rc=$?"
  read -r ended rest < /proc/uptime
  echo "$backend took $began $ended"
  grep -E '^(Dirty|Writeback):' /proc/meminfo | sed "s/^/$backend /"
  cp -r /p/data/$backend /out/$backend
  rm /p/tmp/slow/f* # pages that are not being written need not be any more
done
"""


@pytest.fixture(scope="module", params=_KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """The runs of one kernel: tracefs, trace-cmd."""
    kernel = guest_folders().get(request.param)
    if kernel is None:
        pytest.skip(f"no kernel {request.param} in build/guests; run: make guest-kernels")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    out = tmp_path_factory.mktemp(f"slow-disk-{request.param}")
    disk = request.getfixturevalue("guest_disk")
    boot(
        kernel, disk, _SCENARIO, out,
        smp=_CPUS.get(request.param, "2"), slow_bytes_per_s=_SLOW_BYTES_PER_S,
    )  # fmt: skip
    return Recorder(out)


def _log(guest: Recorder) -> str:
    log = guest.folder / "log"
    return log.read_text() if log.exists() else (guest.folder / "console").read_text()


def _seconds(guest: Recorder, backend: str) -> float:
    (line,) = (line for line in _log(guest).splitlines() if line.startswith(f"{backend} took "))
    began, ended = map(float, line.split()[2:])
    return ended - began


def _pauses(guest: Recorder, run: str) -> dict[str, tuple[int, float]]:
    """Number and seconds of pauses of each process, by the events."""
    rows = guest.sql(
        run,
        "SELECT COALESCE(t.comm, b.tid) AS comm, COUNT(*) AS n, SUM(b.pause) / 1000.0 AS s"
        " FROM ev_balance_dirty_pages AS b LEFT JOIN task AS t USING (tid)"
        " WHERE b.pause > 0 GROUP BY 1",
    )
    return {str(row["comm"]): (row["n"], row["s"]) for row in rows}


def test_recorder_is_not_held(guest: Recorder) -> None:
    assert "tracefs rc=0" in _log(guest)
    meta = guest.meta("tracefs")
    assert (meta["ended"], meta["problems"], sum(meta["lost"].values())) == ("complete", [], 0)
    assert meta["recorder_throttled_ns"] == 0
    pauses = _pauses(guest, "tracefs")
    assert pauses.keys() == {"dd"}, pauses
    assert pauses["dd"][1] > 0


def test_samples_are_not_held(guest: Recorder) -> None:
    """They go on while dd is held, and none waits for the disk: it takes a minute to get below."""
    text = (guest.folder / "tracefs/meminfo.samples").read_text()
    stamps = [int(line[5:]) for line in text.splitlines() if line.startswith("# ts=")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    (held,) = guest.sql(
        "tracefs",
        "SELECT MIN(ts) AS first, MAX(ts) AS last FROM ev_balance_dirty_pages WHERE pause > 0",
    )
    assert sum(held["first"] < stamp < held["last"] for stamp in stamps) > 3
    assert max(gaps) < (held["last"] - held["first"]) / 2, gaps
    assert "\0" not in text


def test_trace_cmd_says_how_long_it_was_held(guest: Recorder) -> None:
    """It writes through the page cache, which cannot be helped: 15 s on 7.2, nothing on 6.1."""
    assert "trace-cmd rc=0" in _log(guest)
    meta = guest.meta("trace-cmd")
    throttled_s = meta["recorder_throttled_ns"] / 1e9
    held = sum(s for comm, (_, s) in _pauses(guest, "trace-cmd").items() if comm == "trace-cmd")
    assert held <= throttled_s < _seconds(guest, "trace-cmd")
    assert ("held in balance_dirty_pages" in str(meta["problems"])) == (throttled_s > 0)
