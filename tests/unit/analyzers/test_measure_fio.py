# SPDX-License-Identifier: Apache-2.0
"""fio.json: numbers of real files, sums over jobs, and files that are refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.archives import unpacked
from wbscope.base.errors import InputError
from wbscope.measure.fio import fio_document, parse_fio
from wbscope.measure.metric import Scalars

DATA = unpacked("data") / "measure"


def read(name: str) -> Any:
    return fio_document((DATA / name).read_text())


def value(scalars: Scalars, name: str) -> float | None:
    return scalars[name][1]


@pytest.mark.parametrize("name", ["fio-3.33.json", "fio-3.33-group.json"])
def test_one_job_has_what_fio_says(name: str) -> None:
    document = read(name)
    (job,) = document["jobs"]
    scalars = parse_fio(document)
    for direction in ("read", "write"):
        told = job[direction]
        if not told["total_ios"]:
            assert f"fio.{direction}.bw_bytes_per_s" not in scalars
            continue
        # fio cuts what is after the point.
        assert int(value(scalars, f"fio.{direction}.bw_bytes_per_s") or 0) == told["bw_bytes"]
        assert value(scalars, f"fio.{direction}.iops") == pytest.approx(told["iops"], abs=1e-6)
        assert value(scalars, f"fio.{direction}.runtime_ns") == told["runtime"] * 10**6
        assert value(scalars, f"fio.{direction}.clat_mean_ns") == told["clat_ns"]["mean"]
        for share in ("50", "99", "99.9", "99.99"):
            there = told["clat_ns"]["percentile"][f"{float(share):.6f}"]
            assert value(scalars, f"fio.{direction}.clat_p{share}_ns") == there
        assert f"fio.{direction}.clat_p60_ns" not in scalars
    assert value(scalars, "fio.usr_cpu_ratio") == pytest.approx(job["usr_cpu"] / 100)
    assert not any("[" in key for key in scalars)


def test_directions_and_units() -> None:
    scalars = parse_fio(read("fio-3.33.json"))
    metric = scalars["fio.write.bw_bytes_per_s"][0]
    assert (metric.unit, metric.better, metric.source) == ("bytes/s", "higher", "fio.json")
    assert scalars["fio.write.clat_p99_ns"][0].better == "lower"
    assert scalars["fio.write.io_bytes"][0].better == "neutral"
    assert all(metric.meaning.endswith(".") for metric, _ in scalars.values())


def test_fsync_has_latencies_of_its_own() -> None:
    document = read("fio-3.33-group.json")
    told = document["jobs"][0]["sync"]
    scalars = parse_fio(document)
    assert value(scalars, "fio.sync.total_ios_count") == told["total_ios"] == 33
    assert value(scalars, "fio.sync.lat_p99_ns") == told["lat_ns"]["percentile"]["99.000000"]


def test_jobs_are_added_up_as_group_reporting_does() -> None:
    scalars = parse_fio(read("fio-3.33-plus.json"))
    jobs = [job for job in read("fio-3.33-plus.json")["jobs"] if job["jobname"] == "three"]
    longest_s = max(job["write"]["runtime"] for job in jobs) / 1000
    written = sum(job["write"]["io_bytes"] for job in jobs)
    assert len(jobs) == 3
    assert written == 3 * 3 * 2**20
    rate = value(scalars, "fio.write.bw_bytes_per_s[job=three]")
    assert rate == pytest.approx(written / longest_s)
    worst = max(job["write"]["clat_ns"]["max"] for job in jobs)
    assert value(scalars, "fio.write.clat_max_ns[job=three]") == worst
    assert value(scalars, "fio.write.io_bytes") == written + 7 * 2**20
    assert value(scalars, "fio.read.io_bytes") == 7 * 2**20
    assert "fio.read.bw_bytes_per_s[job=left]" not in scalars


def test_jobs_after_a_stonewall_have_no_rate_with_those_before() -> None:
    """Over the longest run time the sum said nothing of how fast the first job was."""
    document = read("fio-3.33-stonewall.json")
    scalars = parse_fio(document)
    jobs = {job["jobname"]: job for job in document["jobs"]}
    assert [job["groupid"] for job in document["jobs"]] == [0, 1, 1, 2]
    assert "fio.write.bw_bytes_per_s" not in scalars
    assert "fio.write.iops" not in scalars
    for name, count in (("fast", 1), ("slow", 2)):
        longest_s = max(
            job["write"]["runtime"] / 1000 for job in document["jobs"] if job["jobname"] == name
        )
        rate = value(scalars, f"fio.write.bw_bytes_per_s[job={name}]")
        assert rate == pytest.approx(count * 2**20 / longest_s)
    assert value(scalars, "fio.write.io_bytes") == 3 * 2**20
    # One group alone has read.
    rate = value(scalars, "fio.read.bw_bytes_per_s")
    assert rate == pytest.approx(2**20 / (jobs["again"]["read"]["runtime"] / 1000))
    assert not any("[group=" in name for name in scalars)  # each is a job's name


def test_groups_that_are_no_job_have_rates_of_their_own() -> None:
    document = read("fio-3.33-stonewall.json")
    document["jobs"][1]["jobname"] = "fast"
    document["jobs"][2]["jobname"] = "other"
    scalars = parse_fio(document)
    assert "fio.write.bw_bytes_per_s[job=fast]" not in scalars  # it is of two groups
    longest_s = max(document["jobs"][at]["write"]["runtime"] for at in (1, 2)) / 1000
    rate = value(scalars, "fio.write.bw_bytes_per_s[group=1]")
    assert rate == pytest.approx(2 * 2**20 / longest_s)
    assert "fio.write.bw_bytes_per_s[group=0]" in scalars
    for job in document["jobs"]:
        del job["groupid"]
    assert "fio.write.bw_bytes_per_s" in parse_fio(document)


def test_percentiles_from_histograms_are_fios_own() -> None:
    """The bins of one job, taken apart into two jobs, give that job's percentiles again."""
    document = read("fio-3.33-plus.json")
    job = document["jobs"][0]
    told = job["write"]["clat_ns"]
    halves = json.loads(json.dumps([job, job]))
    for number, half in enumerate(halves):
        clat = half["write"]["clat_ns"]
        bins = clat["bins"]
        clat["bins"] = {key: bins[key] for key in list(bins)[number::2]}
        clat["N"] = sum(clat["bins"].values())
    scalars = parse_fio({**document, "jobs": halves})
    for share in (50, 90, 95, 99, 99.9, 99.99):
        there = told["percentile"][f"{share:.6f}"]
        assert value(scalars, f"fio.write.clat_p{share:g}_ns") == there


def test_several_jobs_without_histograms_have_no_percentiles() -> None:
    document = read("fio-3.33.json")
    twice = parse_fio({**document, "jobs": document["jobs"] * 2})
    assert "fio.write.clat_p99_ns" not in twice
    assert "fio.write.clat_mean_ns" in twice


def test_a_list_of_percentiles_of_the_users_own_is_taken_whole() -> None:
    document = read("fio-3.33.json")
    document["jobs"][0]["write"]["clat_ns"]["percentile"] = {"60.000000": 7, "97.500000": 11}
    scalars = parse_fio(document)
    assert value(scalars, "fio.write.clat_p60_ns") == 7
    assert value(scalars, "fio.write.clat_p97.5_ns") == 11


def test_a_job_too_short_to_time_has_no_rate() -> None:
    document = read("fio-3.33.json")
    document["jobs"][0]["write"]["runtime"] = 0
    assert value(parse_fio(document), "fio.write.bw_bytes_per_s") is None


def test_a_job_name_with_signs_of_metric_names() -> None:
    document = read("fio-3.33-plus.json")
    document["jobs"][0]["jobname"] = "a b,c=[d]"
    assert "fio.write.iops[job=a_b_c__d_]" in parse_fio(document)


def changed(path: str, to: Any) -> Any:
    """The real document with one value changed; without it when `to` is ..."""
    document = read("fio-3.33.json")
    *ways, last = path.split(".")
    inside = document
    for way in ways:
        inside = inside[int(way) if way.isdigit() else way]
    if to is ...:
        del inside[last]
    else:
        inside[last] = to
    return document


@pytest.mark.parametrize(
    ("path", "to", "at", "said"),
    [
        ("jobs", ..., "$", 'has no "jobs"'),
        ("jobs", {}, "$.jobs", 'found "{}", wanted a list'),
        ("jobs", [], "$.jobs", "has no jobs"),
        ("jobs", [7], "$.jobs[0]", "wanted an object"),
        ("fio version", 3, "$.fio version", "wanted a text"),
        ("jobs.0.error", None, "$.jobs[0].error", "wanted a number of 0 or more"),
        ("jobs.0.write.io_bytes", ..., "$.jobs[0].write", 'has no "io_bytes"'),
        ("jobs.0.write.io_bytes", "7", "$.jobs[0].write.io_bytes", 'found "7"'),
        ("jobs.0.write.io_bytes", -1, "$.jobs[0].write.io_bytes", 'found "-1"'),
        ("jobs.0.write.io_bytes", True, "$.jobs[0].write.io_bytes", 'found "True"'),
        ("jobs.0.write.io_bytes", 6768, "$.jobs[0].write.io_bytes", "6768 KiB in bytes"),
        ("jobs.0.write.runtime", float("inf"), "$.jobs[0].write.runtime", 'found "inf"'),
        ("jobs.0.write.runtime", 2**64, "$.jobs[0].write.runtime", "wanted a number"),
        ("jobs.0.write.clat_ns.percentile", {"x": 1}, "$.jobs[0].write.clat_ns.percentile", "0 to"),
        ("jobs.0.write.clat_ns", [], "$.jobs[0].write.clat_ns", 'has no "N"'),
    ],
)
def test_what_is_wrong_is_named_with_its_place(path: str, to: Any, at: str, said: str) -> None:
    if path.endswith("clat_ns"):
        said = "wanted an object"
    with pytest.raises(InputError) as caught:
        parse_fio(changed(path, to), "RUN/fio.json")
    assert caught.value.slug == "bad-measurement"
    assert caught.value.subject == "RUN/fio.json"
    assert caught.value.at == at
    assert said in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize("version", ["fio-2.21", "fio", "", "fio-x.1"])
def test_an_old_fio_counts_in_other_units(version: str) -> None:
    with pytest.raises(InputError, match=r"wanted fio-3\.0 or newer"):
        parse_fio(changed("fio version", version))


def test_a_job_that_failed_is_no_run() -> None:
    with pytest.raises(InputError, match="ended with error 28") as caught:
        parse_fio(changed("jobs.0.error", 28))
    assert caught.value.slug == "failed-workload"


def test_the_client_of_fio_has_other_fields() -> None:
    document = read("fio-3.33.json")
    document["client_stats"] = document.pop("jobs")
    with pytest.raises(InputError, match="of fio's client"):
        parse_fio(document)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no line that begins with {"),
        ("fio: no such job\n", "has no line that begins with {"),
        ('{\n  "fio version" : nan\n}\n', "is no whole JSON"),
        ('{\n  "a" : NaN\n}\n', "NaN is not a number of JSON"),
        ('{\n"a": ' + "[" * 100_000, "nested too deeply"),
        ('{\n"a": ' + "9" * 5000 + "}\n", "is no good JSON"),
    ],
)
def test_what_is_no_document(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fio_document(text)


def test_several_documents() -> None:
    text = (DATA / "fio-3.33.json").read_text()
    with pytest.raises(InputError, match="several documents"):
        fio_document(text + text)


def test_text_around_the_document() -> None:
    """Notes before it are usual; after it is what normal,json prints: one form is enough."""
    text = (DATA / "fio-3.33.json").read_text()
    assert fio_document("note: both iodepth >= 1\n" + text) == fio_document(text)
    with pytest.raises(InputError, match="after the document") as caught:
        read("fio-3.33-both.json")
    assert caught.value.at is not None


def test_a_cut_document() -> None:
    text = (DATA / "fio-3.33.json").read_text().rstrip()
    for end in range(1, len(text) - 1, 61):
        with pytest.raises(InputError, match="is no whole JSON"):
            fio_document(text[:end])


def test_a_key_that_stands_twice() -> None:
    """Options may be given twice; a number that is wanted may not."""
    text = (DATA / "fio-3.33.json").read_text()
    options = text.replace('"name" : "w"', '"name" : "w", "name" : "v"')
    assert options != text
    assert parse_fio(fio_document(options)).keys() == parse_fio(fio_document(text)).keys()
    numbers = text.replace('"short_ios" : 0', '"short_ios" : 0, "short_ios" : 1')
    with pytest.raises(InputError, match="two values of one key"):
        parse_fio(fio_document(numbers))


def test_a_number_without_end_is_refused() -> None:
    """An int of Python has no limit, and no float is so large."""
    text = (DATA / "fio-3.33.json").read_text()
    endless = re.sub(r'"total_ios" : [1-9]\d*', f'"total_ios" : {"9" * 401}', text)
    assert endless != text
    with pytest.raises(InputError, match="wanted a number of 0 or more"):
        parse_fio(fio_document(endless))
