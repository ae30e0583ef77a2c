#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

from python.generators.diff_tests.testing import DataPath, TextProto
from python.generators.diff_tests.testing import Csv
from python.generators.diff_tests.testing import DiffTestBlueprint
from python.generators.diff_tests.testing import TestSuite


def _event(ts_ms, tid, name, **fields):
  """A packet with one generic ftrace event, ts_ms after boot."""
  lines = []
  for key, value in fields.items():
    kind = 'str_value' if isinstance(value, str) else 'int_value'
    quoted = f'"{value}"' if isinstance(value, str) else value
    lines.append(f'field {{ name: "{key}" {kind}: {quoted} }}')
  return f"""
  packet {{
    ftrace_events {{
      cpu: 0
      event {{
        timestamp: {round(ts_ms * 1000000)}
        pid: {tid}
        generic {{ event_name: "{name}" {' '.join(lines)} }}
      }}
    }}
  }}
  """


def _throttle(ts_ms, tid, **fields):
  """balance_dirty_pages as a kernel of 2025 and later has it."""
  usual = {
      'bdi': '8:0',
      'cgroup_ino': 1,
      'limit': 1000,
      'setpoint': 750,
      'dirty': 800,
      'wb_setpoint': 740,
      'wb_dirty': 790,
      'dirty_ratelimit': 4096,
      'task_ratelimit': 2048,
      'dirtied': 16,
      'dirtied_pause': 16,
      'paused': 0,
      'pause': 0,
      'period': 0,
      'think': 0,
  }
  return _event(ts_ms, tid, 'balance_dirty_pages', **{**usual, **fields})


def _dirty_state(ts_ms, tid, **fields):
  """global_dirty_state; nr_unstable is gone since 5.8."""
  usual = {
      'nr_dirty': 100,
      'nr_writeback': 50,
      'background_thresh': 200,
      'dirty_thresh': 400,
      'dirty_limit': 400,
      'nr_dirtied': 0,
      'nr_written': 0,
  }
  return _event(ts_ms, tid, 'global_dirty_state', **{**usual, **fields})


def _threads(**names):
  """A packet that names threads: name=tid."""
  told = ''.join(f'threads {{ tid: {tid} tgid: {tid} name: "{name}" }}'
                 for name, tid in names.items())
  return f'packet {{ process_tree {{ {told} }} }}'


class LinuxWriteback(TestSuite):

  # By hand: a call that goes round its loop and two pairs that only look like
  # one, a pause that the next event cuts short, counts that are and are not
  # reset, and a thread that must not wait.
  def test_throttle_calls(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _threads(dd=101, uring=102, cp=103),
            # No sleep, no cost: the same 32 pages come again.
            _throttle(1000, 101, dirtied=32),
            _throttle(1010, 101, dirtied=64, period=8),
            # At rate 0 it sleeps until the rate is not 0 any more.
            _throttle(1020, 101, dirtied=32, task_ratelimit=0, pause=200),
            _throttle(1224, 101, dirtied=32, paused=204, pause=100),
            # The next event comes 10 ms before the pause is over.
            _throttle(1400, 101, dirtied=16, pause=40),
            # Away for more than a second: the count is reset.
            _throttle(1430, 101, dirtied=8, pause=-1200),
            # Told to sleep for 100 ms, and back after half a millisecond.
            _throttle(1100, 102, dirtied=32, pause=100),
            _throttle(1100.5, 102, dirtied=32, pause=100),
            # Not stopped, so it left; it was held up in its next call.
            _throttle(2000, 103, pause=20),
            _throttle(2025, 103, paused=25),
            # Stopped, and it left all the same: the pages are others.
            _throttle(2100, 103, dirtied=32, task_ratelimit=0, pause=20),
            _throttle(2130, 103, dirtied=16, paused=30),
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.throttle;

        SELECT
          c.ts, c.dur, t.name, c.event_count, c.pause_count, c.pause_dur,
          c.pause_max_dur, c.charged_bytes
        FROM linux_writeback_throttle_call AS c
        JOIN thread AS t USING (utid)
        ORDER BY c.ts;
        """,
        out=Csv("""
        "ts","dur","name","event_count","pause_count","pause_dur","pause_max_dur","charged_bytes"
        1000000000,0,"dd",1,0,0,0,0
        1010000000,0,"dd",1,0,0,0,262144
        1020000000,304000000,"dd",2,2,300000000,200000000,131072
        1100000000,0,"uring",1,0,0,0,0
        1100500000,100000000,"uring",1,1,100000000,100000000,131072
        1400000000,30000000,"dd",1,1,40000000,40000000,65536
        1430000000,0,"dd",1,0,0,0,32768
        2000000000,20000000,"cp",1,1,20000000,20000000,65536
        2025000000,0,"cp",1,0,0,0,0
        2100000000,20000000,"cp",1,1,20000000,20000000,131072
        2130000000,0,"cp",1,0,0,0,0
        """))

  # By hand: units; wb_... and the older bdi_... names of fields.
  def test_throttle_event_columns(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _throttle(1000, 101, pause=8, paused=4, period=12, think=-4),
            _event(
                1001,
                102,
                'balance_dirty_pages',
                bdi='btrfs-1',
                limit=10,
                bdi_setpoint=3,
                bdi_dirty=2,
                dirtied=1,
                pause=0),
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.throttle;

        SELECT
          bdi, cgroup_ino, pause_dur, paused_dur, period_dur, think_dur,
          limit_bytes, setpoint_bytes, dirty_bytes, wb_setpoint_bytes,
          wb_dirty_bytes, dirty_ratelimit_bytes_per_s AS base,
          task_ratelimit_bytes_per_s AS rate
        FROM linux_writeback_throttle_event
        ORDER BY ts;
        """,
        out=Csv("""
        "bdi","cgroup_ino","pause_dur","paused_dur","period_dur","think_dur","limit_bytes","setpoint_bytes","dirty_bytes","wb_setpoint_bytes","wb_dirty_bytes","base","rate"
        "8:0",1,8000000,4000000,12000000,-4000000,4096000,3072000,3276800,3031040,3235840,4194304,2097152
        "btrfs-1","[NULL]",0,"[NULL]","[NULL]","[NULL]",40960,"[NULL]","[NULL]",12288,8192,"[NULL]","[NULL]"
        """))

  # By hand: two threads that get rates of 1 to 3: (1+3)^2 / (2 * (1+9)) = 0.8.
  # The slow one never had to wait. A third is charged 8 KiB for its messages.
  # Charged are 130 of 260 pages.
  def test_fairness(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _dirty_state(900, 101, nr_dirtied=1000),
            _throttle(1000, 101, period=10),
            _throttle(1000, 102, pause=10),
            _throttle(1500, 103, dirtied=1, period=1),
            _throttle(1600, 103, dirtied=1, period=1),
            _throttle(2000, 101, dirtied=24, period=10),
            _throttle(2000, 102, dirtied=72, pause=10),
            _dirty_state(2100, 101, nr_dirtied=1260),
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.fairness;

        SELECT * FROM linux_writeback_fairness;
        """,
        out=Csv("""
        "bdi","cgroup_ino","thread_count","charged_bytes_per_s","jain_index","slowest_to_fastest_ratio","coverage_ratio"
        "8:0",1,2,393216.000000,0.800000,0.333333,0.500000
        """))

  # By hand: pages of NFS that are not stable, and a limit that is still above
  # a threshold that fell.
  def test_dirty_state(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _dirty_state(1000, 101, nr_unstable=10, nr_dirtied=7),
            _dirty_state(1250, 101, dirty_thresh=300, nr_written=5),
            _event(2000, 101, 'unrelated'),
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.dirty;

        SELECT
          ts, dur, dirty_bytes / 4096 AS dirty, file_dirty_bytes / 4096 AS file,
          writeback_bytes / 4096 AS wb, freerun_bytes / 4096 AS freerun,
          setpoint_bytes / 4096 AS setpoint, bg_thresh_bytes / 4096 AS bg,
          thresh_bytes / 4096 AS thresh, limit_bytes / 4096 AS max,
          dirtied_bytes / 4096 AS dirtied, written_bytes / 4096 AS written
        FROM linux_writeback_dirty_state
        ORDER BY ts;
        """,
        out=Csv("""
        "ts","dur","dirty","file","wb","freerun","setpoint","bg","thresh","max","dirtied","written"
        1000000000,250000000,160,100,50,300,350,200,400,400,7,0
        1250000000,750000000,150,100,50,250,325,200,300,400,0,5
        """))

  # By hand: two devices, and two cgroups of one of them, each with its own
  # next update.
  def test_bdi_bandwidth_of_devices(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _event(
                ts,
                101,
                'bdi_dirty_ratelimit',
                bdi=bdi,
                cgroup_ino=ino,
                write_bw=write_bw,
                avg_write_bw=4,
                dirty_rate=5,
                dirty_ratelimit=6,
                task_ratelimit=7,
                balanced_dirty_ratelimit=8)
            for ts, bdi, ino, write_bw in [
                (1000, '8:0', 1, 1),
                (1100, '8:16', 1, 2),
                (1200, '8:0', 27, 3),
                (1300, '8:0', 1, 4),
            ]
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.dirty;

        SELECT
          ts, dur, bdi, cgroup_ino, write_bytes_per_s / 1024 AS write,
          avg_write_bytes_per_s / 1024 AS avg,
          dirty_bytes_per_s / 1024 AS dirty,
          dirty_ratelimit_bytes_per_s / 1024 AS base,
          task_ratelimit_bytes_per_s / 1024 AS task,
          balanced_ratelimit_bytes_per_s / 1024 AS balanced
        FROM linux_writeback_bdi_bandwidth
        ORDER BY ts;
        """,
        out=Csv("""
        "ts","dur","bdi","cgroup_ino","write","avg","dirty","base","task","balanced"
        1000000000,300000000,"8:0",1,1,4,5,6,7,8
        1100000000,200000000,"8:16",1,2,4,5,6,7,8
        1200000000,100000000,"8:0",27,3,4,5,6,7,8
        1300000000,0,"8:0",1,4,4,5,6,7,8
        """))

  # By hand: each way into reclaim, memcg reclaim inside direct reclaim, a
  # thread whose reclaim is over, and zones that overlap.
  def test_reclaim_writes(self):
    return DiffTestBlueprint(
        trace=TextProto(''.join([
            _threads(kswapd0=50, dd=101, other=102),
            _event(
                1, 50, 'mm_vmscan_write_folio', pfn=10, reclaim_flags=9),
            _event(2, 51, 'mm_vmscan_kswapd_wake', nid=1, zid=1, order=0),
            _event(
                3, 51, 'mm_vmscan_write_folio', pfn=250, reclaim_flags=9),
            _event(4, 101, 'mm_vmscan_direct_reclaim_begin', order=0),
            _event(
                5, 101, 'mm_vmscan_writepage', pfn=120, reclaim_flags=10),
            _event(6, 101, 'mm_vmscan_memcg_reclaim_begin', order=0),
            _event(
                7, 101, 'mm_vmscan_write_folio', pfn=11, reclaim_flags=9),
            _event(8, 101, 'mm_vmscan_memcg_reclaim_end', nr_reclaimed=1),
            # RECLAIM_WB_SYNC instead of RECLAIM_WB_ASYNC.
            _event(
                9, 101, 'mm_vmscan_write_folio', pfn=12, reclaim_flags=5),
            _event(10, 101, 'mm_vmscan_direct_reclaim_end', nr_reclaimed=2),
            _event(
                11, 101, 'mm_vmscan_write_folio', pfn=900, reclaim_flags=9),
            _event(
                12, 102, 'mm_vmscan_write_folio', pfn=13, reclaim_flags=9),
        ])),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.reclaim;

        CREATE PERFETTO TABLE zones AS
        WITH data(node, zone, start_pfn, spanned) AS (
          VALUES (0, 'DMA', 1, 99), (0, 'Normal', 100, 100),
                 (1, 'Normal', 110, 200)
        )
        SELECT * FROM data;

        SELECT *
        FROM linux_writeback_reclaim_write_by_zone!(zones)
        ORDER BY node, zone, reclaimer;
        """,
        out=Csv("""
        "node","zone","reclaimer","kind","folio_count"
        "[NULL]","ambiguous","direct","file",1
        "[NULL]","unknown","other","anon",1
        0,"DMA","direct","anon",1
        0,"DMA","kswapd","anon",1
        0,"DMA","memcg","anon",1
        0,"DMA","other","anon",1
        1,"Normal","kswapd","anon",1
        """))

  # Four dd write to one ext4 disk of 20 MB/s; Linux 6.1.
  def test_throttle_by_thread(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_6_1.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.throttle;

        SELECT
          tid, bdi, cgroup_ino, call_count, pause_count, pause_dur,
          pause_max_dur, call_max_dur, charged_bytes, throttled_ratio
        FROM linux_writeback_throttle_by_thread
        JOIN thread USING (utid)
        ORDER BY tid;
        """,
        out=Csv("""
        "tid","bdi","cgroup_ino","call_count","pause_count","pause_dur","pause_max_dur","call_max_dur","charged_bytes","throttled_ratio"
        122,"254:0",1,199,62,6292000000,176000000,434466128,30658560,0.867944
        123,"254:0",1,261,68,6444000000,196000000,474834709,47050752,0.845008
        124,"254:0",1,216,67,6220000000,176000000,649389862,37163008,0.859447
        125,"254:0",1,243,70,6328000000,188000000,483590578,48705536,0.855014
        """))

  def test_bdi_bandwidth(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_6_1.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.dirty;

        SELECT
          ts, dur, bdi, write_bytes_per_s AS write,
          avg_write_bytes_per_s AS avg, dirty_bytes_per_s AS dirty,
          dirty_ratelimit_bytes_per_s AS base,
          task_ratelimit_bytes_per_s AS task,
          balanced_ratelimit_bytes_per_s AS balanced
        FROM linux_writeback_bdi_bandwidth
        ORDER BY ts
        LIMIT 6;
        """,
        out=Csv("""
        "ts","dur","bdi","write","avg","dirty","base","task","balanced"
        10900804303,408132439,"254:0",99737600,104857600,156274688,104857600,98820096,66306048
        11308936742,215905925,"254:0",91869184,103227392,0,104857600,4096,103227392
        11524842667,229772452,"254:0",86933504,101810176,35799040,104857600,4096,8192
        11754615119,257944054,"254:0",84393984,99950592,0,104857600,104861696,99950592
        12012559173,65117,"254:0",81743872,98009088,34783232,104853504,4096,8192
        12012624290,205837252,"254:0",76554240,95977472,0,104816640,4096,95977472
        """))

  # The same on Linux 7.2, which has other names and places of fields.
  def test_fairness_of_equal_writers(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_7_2.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.fairness;

        SELECT * FROM linux_writeback_fairness;
        """,
        out=Csv("""
        "bdi","cgroup_ino","thread_count","charged_bytes_per_s","jain_index","slowest_to_fastest_ratio","coverage_ratio"
        "254:0",1,4,16318190.803517,0.977500,0.653463,0.671745
        """))

  def test_time_above_setpoint(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_7_2.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.dirty;

        SELECT
          count() AS samples,
          max(dirty_bytes) AS dirty_max,
          sum(iif(dirty_bytes > setpoint_bytes, dur, 0)) AS above_setpoint,
          sum(iif(dirty_bytes > limit_bytes, dur, 0)) AS above_limit,
          max(written_bytes) - min(written_bytes) AS written
        FROM linux_writeback_dirty_state;
        """,
        out=Csv("""
        "samples","dirty_max","above_setpoint","above_limit","written"
        1198,61911040,17662617215,11080384838,369143808
        """))

  # One dd in a memory cgroup of 64 MiB, two outside of it; Linux 6.12.
  def test_throttle_in_a_cgroup(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_cgroup.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.throttle;

        SELECT tid, cgroup_ino, call_count, pause_dur, charged_bytes
        FROM linux_writeback_throttle_by_thread
        JOIN thread USING (utid)
        ORDER BY tid, cgroup_ino;
        """,
        out=Csv("""
        "tid","cgroup_ino","call_count","pause_dur","charged_bytes"
        173,27,119,3732000000,23142400
        174,1,111,4060000000,15962112
        175,1,202,4096000000,22982656
        """))

  # A machine that swaps; Linux 6.1.
  def test_reclaim_writes_by_zone(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_reclaim.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.reclaim;

        CREATE PERFETTO TABLE zones AS
        WITH data(node, zone, start_pfn, spanned) AS (
          VALUES (0, 'DMA', 1, 4095), (0, 'DMA32', 4096, 77783)
        )
        SELECT * FROM data;

        SELECT *
        FROM linux_writeback_reclaim_write_by_zone!(zones)
        ORDER BY node, zone, reclaimer;
        """,
        out=Csv("""
        "node","zone","reclaimer","kind","folio_count"
        0,"DMA","direct","anon",141
        0,"DMA","kswapd","anon",282
        0,"DMA32","direct","anon",2344
        0,"DMA32","kswapd","anon",2521
        """))

  def test_reclaim_writes_by_reclaimer(self):
    return DiffTestBlueprint(
        trace=DataPath('linux_writeback_reclaim.pftrace'),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.reclaim;

        SELECT *
        FROM linux_writeback_reclaim_write_by_reclaimer
        ORDER BY reclaimer, kind;
        """,
        out=Csv("""
        "reclaimer","kind","thread_count","folio_count"
        "direct","anon",2,2485
        "kswapd","anon",1,2803
        """))

  # A trace without any of these events: no rows and no error.
  def test_no_events(self):
    return DiffTestBlueprint(
        trace=TextProto(''),
        query="""
        INCLUDE PERFETTO MODULE linux.writeback.fairness;
        INCLUDE PERFETTO MODULE linux.writeback.reclaim;

        SELECT
          (SELECT count() FROM linux_writeback_throttle_event) AS events,
          (SELECT count() FROM linux_writeback_throttle_call) AS calls,
          (SELECT count() FROM linux_writeback_dirty_state) AS states,
          (SELECT count() FROM linux_writeback_bdi_bandwidth) AS updates,
          (SELECT count() FROM linux_writeback_fairness) AS fairness,
          (SELECT count() FROM linux_writeback_reclaim_write) AS writes;
        """,
        out=Csv("""
        "events","calls","states","updates","fairness","writes"
        0,0,0,0,0,0
        """))
