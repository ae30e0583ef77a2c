# SPDX-License-Identifier: Apache-2.0
"""What is installed without a checkout, and its demo."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
from support.browser import dead_links
from support.cli import Wbscope, check_error
from support.runs import REPOSITORY
from support.tools import require_program, wbscope_path
from wbscope.cli.demo import packed_run
from wbscope.cli.verbs import VERBS

# What is installed without a checkout: the files, and what is said where it cannot be built.


@pytest.fixture
def deb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    return importlib.import_module("make_deb")


def _cmake(folder: Path, *settings: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cmake", "-S", REPOSITORY, "-B", folder, *settings],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_missing_libraries_are_named_with_the_packages_that_have_them(tmp_path: Path) -> None:
    (tmp_path / "pkgconfig").mkdir()
    done = _cmake(tmp_path / "build", PKG_CONFIG_LIBDIR=str(tmp_path / "pkgconfig"))
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "libtraceevent, libzstd, zlib, sqlite3" in said
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    debs = re.search(r"^DEBS +:= (.*)$", makefile, re.MULTILINE)
    assert debs is not None
    named = re.search(r"apt install ([^.]*)\.", said)
    assert named is not None
    libraries = {name for name in debs[1].split() if name.startswith("lib") or "zlib" in name}
    assert set(named[1].split()) == libraries | {"pkg-config"}


def test_all_data_is_in_the_wheel(tmp_path: Path) -> None:
    """As scikit-build-core asks CMake for them; the program itself is not built for this."""
    built, target = tmp_path / "build", tmp_path / "wheel"
    (tmp_path / "man").mkdir()
    (tmp_path / "man/wbscope.1").write_text("a page\n")
    (tmp_path / "wbscope.cdx.json").write_text("{}\n")
    folders = [f"-DSKBUILD_{name.upper()}_DIR={name}" for name in ("scripts", "data", "metadata")]
    folders.append(f"-DWBSCOPE_SBOM={tmp_path / 'wbscope.cdx.json'}")
    manual = f"-DWBSCOPE_MANUAL={tmp_path / 'man'}"
    done = _cmake(built, *folders, manual, f"-DCMAKE_INSTALL_PREFIX={target}")
    assert done.returncode == 0, done.stderr
    (built / "wbscope-ingest").write_text("not built\n")
    strip = ["cmake", "--install", str(built)]
    subprocess.run(strip, check=True, capture_output=True)
    assert (target / "scripts/wbscope-ingest").is_file()
    assert (target / "data/share/man/man1/wbscope.1").read_text() == "a page\n"
    assert (target / "metadata/sboms/wbscope.cdx.json").read_text() == "{}\n"
    pages = target / "data/share/doc/wbscope"
    named = _named_pages()
    assert len(named) > 10
    for page in named:
        assert (pages / page).read_bytes() == (REPOSITORY / page).read_bytes()
    there = sorted(pages.rglob("*.md"))
    assert {pages / "README.md", pages / "docs/README.md"} <= set(there)
    assert {str(page): found for page in there if (found := list(dead_links(page)))} == {}
    # All this is in the wheel of a program of 3 MB.
    assert sum(picture.stat().st_size for picture in pages.rglob("*.png")) < 900_000
    assert sum(file.stat().st_size for file in pages.rglob("*") if file.is_file()) < 5_000_000
    assert not [*pages.rglob("*.dat"), *pages.rglob("*.xz")]
    for place, script in {
        "bash-completion/completions/wbscope": "wbscope.bash",
        "fish/vendor_completions.d/wbscope.fish": "wbscope.fish",
        "zsh/site-functions/_wbscope": "_wbscope",
    }.items():
        source = REPOSITORY / "analyzers/wbscope/cli/completions" / script
        assert (target / "data/share" / place).read_text() == source.read_text()
    package = target / "wbscope"
    for name in ("sql", "kernel-tracepoints/formats", "kernel-tracepoints/text-formats"):
        source = REPOSITORY / name.replace("wbscope/", "")
        wanted = {
            str(path.relative_to(source))
            for path in source.rglob("*")
            if path.is_file() and (name == "sql" or path.suffix == ".formats")
        }
        there = {
            str(path.relative_to(package / name))
            for path in (package / name).rglob("*")
            if path.is_file()
        }
        assert there == wanted
        assert wanted
    demo = REPOSITORY / "tests/corpus/6.1-slow-starves-fast/run.tar.xz"
    assert (package / "demo/run.tar.xz").read_bytes() == demo.read_bytes()


def _named_pages() -> set[str]:
    """Pages that messages and help texts name, as any other text of the program and its SQL."""
    sources = [*REPOSITORY.glob("analyzers/**/*.py"), *REPOSITORY.glob("sql/**/*.sql")]
    texts = (source.read_text(encoding="utf-8") for source in sources)
    pages = re.compile(r"\b(?:docs|kernel-tracepoints)/[\w-]+\.md\b")
    return {page for text in texts for page in pages.findall(text)} - {"docs/NAME.md"}


def test_the_deb_names_what_the_program_is_linked_to(deb: ModuleType) -> None:
    program = REPOSITORY / ".venv/bin/wbscope-ingest"
    if not program.is_file():
        pytest.skip("there is no .venv/bin/wbscope-ingest")
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[0] for line in said.splitlines() if "=>" in line}
    assert needed - set(deb.LINKED) == set()


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages."""
    folder = tmp_path_factory.mktemp("man")
    tool = [sys.executable, REPOSITORY / "tools/make_man.py", "--date", "2026-01-02"]
    subprocess.run([*tool, "-o", folder], check=True)
    return folder


def test_each_verb_has_a_page_of_the_manual(manual: Path) -> None:
    names = {f"wbscope-{verb.name}" for verb in VERBS}
    assert {page.name for page in manual.iterdir()} == {f"{one}.1" for one in {"wbscope", *names}}
    whole = (manual / "wbscope.1").read_text()
    assert all(name.replace("-", "\\-") in whole for name in names)


def test_the_pages_are_good_roff(manual: Path) -> None:
    mandoc = require_program("mandoc")
    pages = sorted(manual.iterdir())
    done = subprocess.run([mandoc, "-Tlint", "-W", "warning", *pages], capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_a_page_says_what_the_help_says(manual: Path) -> None:
    mandoc = require_program("mandoc")
    page = manual / "wbscope-query.1"
    command = [mandoc, "-Tutf8", "-O", "width=200", page]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = " ".join(re.sub(".\b", "", said).split())  # bold is a letter over itself
    for part in (
        "wbscope-query - Answer a canned query, of one run or of several",
        "Only tasks of this name, e.g. 'dd*', or thread.",
        "--sort [-]NAME,...",
        "wbscope query fairness before.db after.db",
        "2026-01-02",
    ):
        assert part in said


def test_requests_in_a_help_text_are_text(deb: ModuleType) -> None:
    assert deb.verbatim("usage: a-b\n.dot\\n\n\n'") == [
        ".nf", "usage: a\\-b", "\\&.dot\\en", ".sp", "\\(aq", ".fi",
    ]  # fmt: skip


def test_the_program_is_hardened(deb: ModuleType) -> None:
    """make wheel and make deb refuse to pack one that is not."""
    program = wbscope_path().with_name("wbscope-ingest").read_bytes()
    deb.check_hardened(program)
    with pytest.raises(deb.BuildError, match="without _FORTIFY_SOURCE"):
        deb.check_hardened(program.replace(b"_chk\0", b"_bar\0"))


# wbscope demo: what it unpacks, what it says, what it leaves alone.


@pytest.fixture
def wbscope(tmp_path: Path) -> Wbscope:
    (tmp_path / "cache").mkdir(mode=0o700)
    return Wbscope(tmp_path / "cache")


def _packed() -> dict[str, bytes]:
    with tarfile.open(packed_run()) as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive)
        return {Path(name).name: file.read() for name, file in files if file is not None}


def test_it_is_small_and_all_of_it_is_unpacked(wbscope: Wbscope, tmp_path: Path) -> None:
    assert packed_run().stat().st_size < 1 << 20
    done = wbscope.run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "wbscope-demo"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == _packed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "wbscope-demo"]


def test_the_verdict_is_that_of_explain(wbscope: Wbscope, tmp_path: Path) -> None:
    told = wbscope.run("demo", "-q", cwd=tmp_path).stdout
    short = wbscope.run("explain", "wbscope-demo", "--short", cwd=tmp_path).stdout
    assert told.startswith(short)
    assert "Dirty pages of one device throttle writers of another" in short
    assert max(map(len, told.splitlines())) <= 80


def test_the_commands_that_it_names_work(wbscope: Wbscope, tmp_path: Path) -> None:
    told = wbscope.run("demo", "-o", "a b", cwd=tmp_path).stdout
    commands = re.findall(r"^  wbscope (.*?) +# ", told, re.MULTILINE)
    assert len(commands) == 5
    for command in commands[:-1]:  # doctor judges this machine
        done = wbscope.run(*shlex.split(command), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_again_in_the_same_folder(wbscope: Wbscope, tmp_path: Path) -> None:
    first = wbscope.run("demo", cwd=tmp_path)
    inode = (tmp_path / "wbscope-demo/trace.dat").stat().st_ino
    second = wbscope.run("demo", cwd=tmp_path)
    assert (first.stdout, second.returncode) == (second.stdout, 0)
    assert (tmp_path / "wbscope-demo/trace.dat").stat().st_ino == inode


@pytest.mark.parametrize("there", ["folder", "trace", "file", "link"])
def test_what_is_there_is_left_alone(wbscope: Wbscope, tmp_path: Path, there: str) -> None:
    place, mine = tmp_path / "wbscope-demo", tmp_path / "mine"
    mine.mkdir()
    if there == "file":
        place.write_text("mine\n")
    elif there == "link":
        place.symlink_to(mine)
    else:
        place.mkdir()
        (place / ("trace.dat" if there == "trace" else "notes")).write_text("mine\n")
    done = wbscope.run("demo", cwd=tmp_path)
    assert done.returncode == 2
    check_error(done.stderr, "output-exists", "wbscope-demo", fix="wbscope demo -o wbscope-demo-2")
    assert list(mine.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "fix"),
    [
        (".", "wbscope-demo-2"),
        ("", "wbscope-demo-2"),
        ("-", "wbscope-demo-2"),
        ("/", "/wbscope-demo"),
    ],
)
def test_what_is_no_name_for_a_folder(
    wbscope: Wbscope, tmp_path: Path, output: str, fix: str
) -> None:
    (tmp_path / "wbscope-demo").mkdir()
    done = wbscope.run("demo", "-o", output, cwd=tmp_path)
    assert done.returncode == 2
    check_error(done.stderr, "no-new-folder", f"{output or '.'}: ", fix=f"wbscope demo -o {fix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "wbscope-demo"]


def test_the_folder_of_the_demo_itself(wbscope: Wbscope, tmp_path: Path) -> None:
    assert wbscope.run("demo", cwd=tmp_path).returncode == 0
    assert wbscope.run("demo", "-o", ".", cwd=tmp_path / "wbscope-demo").returncode == 0


def test_a_folder_that_nobody_may_write_to(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("demo", "-o", tmp_path / "none/demo")
    assert done.returncode == 5
    assert "No such file or directory" in done.stderr
    assert "fix: wbscope demo -o DIR" in done.stderr
    assert not os.path.lexists(tmp_path / "none")


def test_what_others_have_beside_it_stays(wbscope: Wbscope, tmp_path: Path) -> None:
    for name in (".wbscope-demo-mine", ".git", "wbscope-demo.bak"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
    for _ in range(2):
        assert wbscope.run("demo", cwd=tmp_path).returncode == 0
    left = {".wbscope-demo-mine", ".git", "wbscope-demo.bak", "wbscope-demo", "cache"}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert all((tmp_path / name / "precious").exists() for name in left if "mine" in name)
