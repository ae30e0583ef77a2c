# SPDX-License-Identifier: Apache-2.0
"""JUnit XML, GitHub annotations and summary, SARIF: of every verdict, and of hostile names."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from support.judged import METRICS, POLICY, hostile, judged, policy_file, side
from support.sarif import SARIF
from wbscope.base.result import Notice
from wbscope.ci.formats import (
    annotation_lines,
    checkout_name,
    checkout_uri,
    findings,
    junit_xml,
    sarif_json,
    step_summary,
)
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Budget, Policy, Rule

VERDICTS = {
    "made.worse_ns": "FAIL",
    "made.same_bytes_per_s": "PASS",
    "made.better_ns": "PASS",
    "made.unsure_count": "INCONCLUSIVE",
    "made.zero_count": "PASS",
    "made.over_budget_ns": "FAIL",
    "made.nowhere.count": "REFUSED",
}


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return policy_file(tmp_path)


@pytest.fixture
def result(policy: Path) -> GateResult:
    return judged(policy)


@pytest.fixture
def refused(policy: Path) -> GateResult:
    lost = Notice("lost-events", "CPU 1 lost 7 events")
    return judged(policy, warnings=(lost,))


def test_the_made_up_runs_have_every_verdict(result: GateResult) -> None:
    assert {v.metric.name: v.status for v in result.verdicts} == VERDICTS
    assert result.status == "FAIL"


# What is told.


def test_each_finding_has_the_line_of_its_rule(result: GateResult, policy: Path) -> None:
    lines = POLICY.splitlines()
    for one in findings(result, policy):
        assert one.line is not None
        rule = re.search(r"""["'](.+)["']\]""", lines[one.line - 1])
        assert rule is not None
        assert one.name.startswith(rule[1].rstrip("*"))
    assert all(one.line is None for one in findings(result))


def test_what_a_failed_metric_says(result: GateResult, policy: Path) -> None:
    worse = findings(result, policy)[0]
    assert (worse.status, worse.grade) == ("FAIL", "error")
    assert worse.why == "significantly worse by more than the margin"
    numbers, holm, meaning = worse.details
    assert numbers.startswith("before 102 ns, now 142 ns (medians), change +39.0 %")
    assert "margin 5%" in numbers
    assert holm == "adjusted for 6 metrics (Holm)"
    assert meaning == "What made.worse_ns is. (lower is better)"


def test_a_metric_that_went_to_zero_is_told_in_its_unit(result: GateResult) -> None:
    zero = next(one for one in findings(result) if one.name == "made.zero_count")
    assert "-667839" in "\n".join(zero.details)


def test_a_budget_alone_has_its_median(result: GateResult) -> None:
    over = next(one for one in findings(result) if one.name == "made.over_budget_ns")
    assert over.details[0] == "now 200 ms (median of 6 runs)"
    assert "budget: median <= 100ms" in over.details


def test_an_undecided_metric_says_what_would_tell(result: GateResult) -> None:
    unsure = next(one for one in findings(result) if one.name == "made.unsure_count")
    assert unsure.grade == "warning"
    assert any("smallest regression that these runs can detect" in line for line in unsure.details)


@pytest.mark.parametrize(("inconclusive", "grade"), [("pass", "none"), ("fail", "error")])
def test_the_policy_says_what_inconclusive_means(
    result: GateResult, inconclusive: str, grade: str
) -> None:
    mapped = replace(result, policy=replace(result.policy, inconclusive=inconclusive))
    grades = {one.grade for one in findings(mapped) if one.status == "INCONCLUSIVE"}
    assert grades == {grade}


# JUnit XML. The content model is that of junit-10.xsd of Jenkins' xUnit plugin.

ATTRIBUTES = {
    "testsuites": ({"tests", "failures", "errors"}, {"name", "time"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package", "file"},
    ),
    "properties": (set(), set()),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name"}, {"classname", "time", "group"}),
    "failure": (set(), {"type", "message"}),
    "error": (set(), {"type", "message"}),
    "skipped": (set(), {"type", "message"}),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out", "system-err"},
    "properties": {"property"},
    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
}


def checked_junit(text: str) -> ElementTree.Element:
    top = ElementTree.fromstring(text)
    assert top.tag == "testsuites"
    for element in top.iter():
        must, may = ATTRIBUTES[element.tag]
        assert must <= set(element.keys()) <= must | may, element.tag
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set()), element.tag
    for suite in top.iter("testsuite"):
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        for tag, attribute in (("failure", "failures"), ("error", "errors")):
            found = sum(case.find(tag) is not None for case in cases)
            assert int(suite.get(attribute, "")) == found
        assert int(suite.get("skipped", "")) == sum(c.find("skipped") is not None for c in cases)
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len(set(names)) == len(names)
    return top


def test_junit(result: GateResult, policy: Path) -> None:
    top = checked_junit(junit_xml(result, policy))
    tags = {"FAIL": "failure", "INCONCLUSIVE": "skipped", "PASS": "system-out", "REFUSED": "error"}
    told = {case.get("name"): case for case in top.iter("testcase")}
    assert list(told) == list(VERDICTS)
    for name, status in VERDICTS.items():
        (inside,) = told[name]
        assert inside.tag == tags[status]
    failure = told["made.worse_ns"].find("failure")
    assert failure is not None
    assert failure.get("type") == "regression"
    assert failure.get("message") == "significantly worse by more than the margin"
    assert "now 142 ns" in (failure.text or "")
    assert told["made.worse_ns"].get("classname") == "wbscope.gate.made"


def test_junit_when_inconclusive_fails_or_passes(result: GateResult) -> None:
    fails = replace(result, policy=replace(result.policy, inconclusive="fail"))
    suite = checked_junit(junit_xml(fails)).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == ("3", "0")
    passes = replace(result, policy=replace(result.policy, inconclusive="pass"))
    suite = checked_junit(junit_xml(passes)).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "0")


def test_what_is_surely_worse_is_seen(result: GateResult, policy: Path) -> None:
    """Nobody looks at a test that was skipped."""
    (failed, *_) = result.verdicts
    told = replace(result, verdicts=(replace(failed, status="WORSE"),))
    case = checked_junit(junit_xml(told)).find("testsuite/testcase/failure")
    assert case is not None
    assert case.get("type") == "worse"
    (line, _) = annotation_lines(told, policy)
    assert line.startswith("::warning ")
    (found,) = json.loads(sarif_json(told, policy))["runs"][0]["results"]
    assert (found["kind"], found["level"]) == ("fail", "warning")
    passes = replace(told, policy=replace(result.policy, worse="pass"))
    assert checked_junit(junit_xml(passes)).find("testsuite/testcase/failure") is None


def test_junit_of_a_refusal(refused: GateResult) -> None:
    top = checked_junit(junit_xml(refused))
    cases = list(top.iter("testcase"))
    assert cases
    assert all(case.find("error") is not None for case in cases)
    assert cases[0].get("classname") == "wbscope.gate.refused"


def test_junit_of_one_refusal_for_many_runs_has_distinct_names(refused: GateResult) -> None:
    assert len(refused.refusals) == 6
    checked_junit(junit_xml(refused))


def test_junit_of_hostile_names(tmp_path: Path) -> None:
    result = hostile(tmp_path)
    text = junit_xml(result)
    (case,) = checked_junit(text).iter("testcase")
    assert case.get("name") == result.verdicts[0].metric.name
    assert "\x1b" not in text
    assert "\ufffe" not in text


# GitHub. A line is one workflow command: `::kind key=value,key=value::message`.

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::([^\r\n]*)")


def parsed(lines: list[str]) -> list[tuple[str, dict[str, str], str]]:
    found = []
    for line in lines:
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        keys = dict(pair.split("=", 1) for pair in match[2].split(","))
        assert set(keys) <= {"file", "line", "title"}
        for code, char in (("%3A", ":"), ("%2C", ","), ("%25", "%")):
            keys = {key: value.replace(code, char) for key, value in keys.items()}
        found.append((match[1], keys, match[3]))
    return found


def test_annotations(result: GateResult, policy: Path) -> None:
    told = parsed(annotation_lines(result, policy))
    kinds = [kind for kind, _, _ in told]
    assert kinds == ["error", "error", "error", "warning", "notice"]
    _, keys, message = told[0]
    assert keys == {"file": "gate.toml", "line": "2", "title": "FAIL: made.worse_ns"}
    assert message.startswith("significantly worse by more than the margin%0Abefore 102 ns, now")
    assert told[-1][2].startswith("FAIL: 2 FAIL, 1 REFUSED, 1 INCONCLUSIVE, 3 PASS")


def test_annotations_of_a_refusal(refused: GateResult, policy: Path) -> None:
    told = parsed(annotation_lines(refused, policy))
    assert told[0][0] == "error"
    assert told[0][1]["title"] == "REFUSED: lost-events"


def test_annotations_without_a_policy_file(result: GateResult) -> None:
    assert "file" not in parsed(annotation_lines(result))[0][1]


def test_no_more_annotations_than_github_shows(result: GateResult, policy: Path) -> None:
    notices = tuple(Notice("lost-events", f"{n}", "now") for n in range(40))
    told = parsed(annotation_lines(replace(result, warnings=notices), policy))
    warnings = [message for kind, _, message in told if kind == "warning"]
    assert len(warnings) == 10
    assert warnings[-1] == "and 32 more: see the summary of this step"


@pytest.mark.parametrize(("count", "last"), [(9, "8"), (10, "and 2 more: see the summary of")])
def test_as_many_annotations_as_github_shows(
    result: GateResult, policy: Path, count: int, last: str
) -> None:
    """With the metric that is undecided they are 10 and 11."""
    notices = tuple(Notice("lost-events", f"{n}", "now") for n in range(count))
    told = parsed(annotation_lines(replace(result, warnings=notices), policy))
    warnings = [message for kind, _, message in told if kind == "warning"]
    assert len(warnings) == 10
    assert last in warnings[-1]


def test_annotations_of_hostile_names(tmp_path: Path) -> None:
    told = parsed(annotation_lines(hostile(tmp_path), tmp_path / "gate.toml"))
    kinds = [kind for kind, _, _ in told]
    assert kinds == ["error", "warning", "notice"]


def test_the_summary_of_the_step(result: GateResult, refused: GateResult, tmp_path: Path) -> None:
    assert step_summary(result).startswith("## wbscope gate: FAIL: 2 FAIL")
    assert step_summary(refused).startswith("## wbscope gate: REFUSED")
    rows = [line for line in step_summary(hostile(tmp_path)).splitlines() if line[:1] == "|"]
    assert len(rows) == 3
    large = step_summary(result, expected="x" * (1 << 20))
    assert large.startswith("## wbscope gate: FAIL: 2 FAIL")
    assert len(large) < 1 << 10


# SARIF 2.1.0, by the clauses of the standard.


def checked_sarif(text: str) -> dict[str, Any]:
    document = json.loads(text)
    jsonschema.validate(document, SARIF)
    (run,) = document["runs"]
    driver = run["tool"]["driver"]  # 3.18.2
    assert driver["name"] == "wbscope"  # 3.19.8
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)  # 3.19.23: array of unique
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]  # 3.49.9
        assert rule["help"]["text"]
    for found in run["results"]:
        assert ids[found["ruleIndex"]] == found["ruleId"]  # 3.27.6
        assert (found["kind"] == "fail") == (found["level"] != "none")  # 3.27.10
        for place in found.get("locations", []):
            physical = place["physicalLocation"]
            assert not physical["artifactLocation"]["uri"].startswith("/")  # 3.4.3
    (invocation,) = run["invocations"]
    for notice in invocation["toolExecutionNotifications"]:
        assert notice["level"] in ("warning", "error")
        assert notice["descriptor"]["id"]
    found_run: dict[str, Any] = run
    return found_run


def test_sarif(result: GateResult, policy: Path) -> None:
    run = checked_sarif(sarif_json(result, policy))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(VERDICTS)
    told = {found["ruleId"]: found for found in run["results"]}
    assert set(told) == {name for name, status in VERDICTS.items() if status != "PASS"}
    worse = told["made.worse_ns"]
    assert (worse["kind"], worse["level"]) == ("fail", "error")
    (place,) = worse["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "gate.toml"},
        "region": {"startLine": 2},
    }
    assert worse["properties"]["medianNow"] == 142.5
    assert worse["properties"]["runsBefore"] == 6
    assert told["made.unsure_count"]["kind"] == "open"
    assert run["invocations"][0]["exitCode"] == 1


def test_sarif_fingerprints_stay(result: GateResult, policy: Path) -> None:
    """A finding that comes again is the same finding, whatever its numbers."""
    first = checked_sarif(sarif_json(result, policy))["results"]
    second = checked_sarif(sarif_json(judged(policy), policy))["results"]
    prints = [found["partialFingerprints"] for found in first]
    assert prints == [found["partialFingerprints"] for found in second]
    assert len({json.dumps(one) for one in prints}) == len(prints)


def test_sarif_of_a_refusal(refused: GateResult, policy: Path) -> None:
    run = checked_sarif(sarif_json(refused, policy))
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 4
    levels = [notice["level"] for notice in invocation["toolExecutionNotifications"]]
    assert levels == ["error"] * 6 + ["warning"] * 6


BROKEN: list[tuple[tuple[str | int, ...], Any]] = [
    (("version",), None),
    (("version",), "2.0.0"),
    (("runs", 0, "tool"), None),
    (("runs", 0, "tool", "driver", "name"), None),
    (("runs", 0, "tool", "driver", "rules", 0, "id"), None),
    (("runs", 0, "results", 0, "message"), None),
    (("runs", 0, "results", 0, "message"), {"text": ""}),
    (("runs", 0, "results", 0, "level"), "fatal"),
    (("runs", 0, "results", 0, "kind"), "open"),  # with level error
    (("runs", 0, "results", 0, "partialFingerprints", "wbscopeMetric/v1"), 5),
    (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
    (("runs", 0, "results", 0, "verdict"), "FAIL"),  # belongs into the property bag
    (("runs", 0, "invocations", 0, "executionSuccessful"), None),
    (("runs", 0, "invocations", 0, "toolExecutionNotifications"), [{"level": "error"}]),
]


@pytest.mark.parametrize(("place", "value"), BROKEN, ids=str)
def test_the_check_of_sarif_finds_what_breaks_the_standard(
    result: GateResult, policy: Path, place: tuple[str | int, ...], value: Any
) -> None:
    document = json.loads(sarif_json(result, policy))
    *way, last = place
    inside = document
    for step in way:
        inside = inside[step]
    if value is None:
        del inside[last]
    else:
        inside[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SARIF)


def test_sarif_of_a_budget_alone_points_to_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no policy to point to: GitHub drops a result without a place."""
    monkeypatch.chdir(tmp_path)
    rules = (Rule("made.over_budget_ns", budget=Budget("<=", "100ms")),)
    result = judge(side("now", 3), None, Policy(rules), [])
    for run in ("runs/2", "runs/10"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "trace.dat").write_bytes(b"\x17\x08\x44tracing6\0")
    (tmp_path / "base.json").write_text("{}")

    def place(*runs: str) -> Any:
        (found,) = checked_sarif(sarif_json(result, None, runs))["results"]
        assert found["properties"]["runsNow"] == 6
        assert found["properties"]["medianNow"] == 2e8
        assert found["properties"]["budgets"] == ["median <= 100ms"]
        return [one["physicalLocation"] for one in found.get("locations", [])]

    trace = {"artifactLocation": {"uri": "runs/2/trace.dat"}}  # it has no lines
    assert place("runs/2", "runs/10") == place("runs") == [trace]
    (tmp_path / "runs/2/meta.json").write_text("{}")
    text = {"artifactLocation": {"uri": "runs/2/meta.json"}, "region": {"startLine": 1}}
    assert place("runs") == [text]
    text = {"artifactLocation": {"uri": "base.json"}, "region": {"startLine": 1}}
    assert place("base.json") == [text]
    assert place() == []


def test_sarif_when_inconclusive_fails(result: GateResult, policy: Path) -> None:
    fails = replace(result, policy=replace(result.policy, inconclusive="fail"))
    run = checked_sarif(sarif_json(fails, policy))
    assert {found["kind"] for found in run["results"]} == {"fail"}


def test_sarif_of_hostile_names(tmp_path: Path) -> None:
    run = checked_sarif(sarif_json(hostile(tmp_path)))
    assert run["results"][0]["ruleId"].startswith("made.<b>")


# File names.


def test_names_from_the_top_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "ci" / "a b.toml"
    monkeypatch.chdir("/")
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
        monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
        monkeypatch.setenv(variable, str(tmp_path))
        assert checkout_name(inside) == "ci/a b.toml"
        assert checkout_uri(inside) == "ci/a%20b.toml"
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path / "other"))
    monkeypatch.chdir(tmp_path / "..")
    assert checkout_name(inside).endswith("ci/a b.toml")


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A run with such a name ended as a bug of wbscope, without a verdict."""
    name = os.fsdecode(b"n\xff.dat")
    assert checkout_uri(tmp_path / name) == f"file://{tmp_path}/n%FF.dat"


def test_a_name_outside_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "checkout"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert checkout_name(tmp_path / "gate.toml") == str(tmp_path / "gate.toml")
    assert checkout_uri(tmp_path / "a b.toml").startswith("file:///")


def test_every_metric_is_in_every_format(result: GateResult, policy: Path) -> None:
    texts = [junit_xml(result, policy), step_summary(result).replace("\\", "")]
    texts.append(sarif_json(result, policy))
    assert all(name in text for name in METRICS for text in texts)
