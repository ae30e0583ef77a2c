#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build a package for the Debian release that this machine runs.

usage: make_deb.py [-o FOLDER]

The program is linked to Debian's libraries, so their security updates reach it. The Python
libraries of the base install come along in /usr/lib/wbscope: Debian 12 has older ones. What the
extras need is Debian's: python3-scipy, python3-matplotlib. Exit code 5: it cannot be built.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from make_man import section, verbatim
from make_wheel import BuildError, check_hardened, one_wheel, run

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/deb"
LIBRARY = "usr/lib/wbscope"
# What the program is linked to, and who has it; `objdump -p` of the program is compared.
LINKED = {
    "libc.so.6": "libc6 (>= 2.36)",
    "libgcc_s.so.1": "libgcc-s1 (>= 12)",
    "libm.so.6": "libc6 (>= 2.36)",
    "libsqlite3.so.0": "libsqlite3-0 (>= 3.40)",
    "libstdc++.so.6": "libstdc++6 (>= 12)",
    "libtraceevent.so.1": "libtraceevent1 (>= 1:1.7)",
    "libz.so.1": "zlib1g (>= 1:1.2.11)",
    "libzstd.so.1": "libzstd1 (>= 1.5)",
}
LAUNCHER = f"""#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import sys

sys.path.insert(0, "/{LIBRARY}")
from wbscope.cli.start import main

sys.exit(main())
"""
POSTINST = f"""#!/bin/sh
set -e
if [ "$1" = configure ]; then
  py3compile -p wbscope /{LIBRARY}
fi
"""
PRERM = f"""#!/bin/sh
set -e
py3clean -p wbscope /{LIBRARY}
"""
# Where each shell looks, below usr/share.
COMPLETIONS = {
    "wbscope.bash": "bash-completion/completions/wbscope",
    "_wbscope": "zsh/vendor-completions/_wbscope",
    "wbscope.fish": "fish/vendor_completions.d/wbscope.fish",
}
# Libraries of Python in a folder of their own, with the texts of their licences beside them.
OVERRIDES = """wbscope: embedded-javascript-library
wbscope: extra-license-file
wbscope: package-contains-documentation-outside-usr-share-doc
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/dist")
    try:
        print(f"deb: {build(parser.parse_args().output)}")
    except BuildError as error:
        print(f"deb: {error}", file=sys.stderr)
        return 5
    return 0


def build(output: Path) -> Path:
    """The package, in the output folder."""
    root = WORK / "root"
    shutil.rmtree(root, ignore_errors=True)
    install(root)
    version = version_of()
    document(root, version)
    control(root, version)
    for path in root.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.read_bytes()[:2] == b"#!" or os.access(path, os.X_OK)
            path.chmod(0o755 if executable else 0o644)
    output.mkdir(parents=True, exist_ok=True)
    package = output / f"wbscope_{version}_{architecture()}.deb"
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(package)])
    return package


def install(root: Path) -> None:
    """The program and the Python library, as the wheel has them, where Debian wants them."""
    library, wheels, venv = root / LIBRARY, WORK / "wheels", WORK / "venv"
    shutil.rmtree(wheels, ignore_errors=True)
    if not (venv / "bin/pip").is_file():
        run([sys.executable, "-m", "venv", str(venv)])
    pip = [str(venv / "bin/pip"), "--quiet", "--disable-pip-version-check"]
    settings = f"--config-settings=build-dir={WORK / 'cmake'}"
    locks = ROOT / "tools/locks"
    run([*pip, "install", "--require-hashes", "-r", str(locks / "build.txt")])
    run(
        [
            *pip,
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            settings,
            f"--wheel-dir={wheels}",
            str(ROOT),
        ]
    )
    target = ["install", "--no-compile", f"--target={library}"]
    # In this order: pip leaves a folder bin that is there as it is.
    run([*pip, *target, "--no-deps", str(one_wheel(wheels))])
    run([*pip, *target, "--require-hashes", "-r", str(locks / "base.txt")])
    programs = root / "usr/bin"
    programs.mkdir(parents=True)
    shutil.move(library / "bin/wbscope-ingest", programs)
    check_hardened((programs / "wbscope-ingest").read_bytes())
    shutil.rmtree(library / "bin")
    for faster in library.glob("markupsafe/_speedups*"):
        faster.unlink()  # for one Python only, and not stripped; it does without
    for module in library.rglob("*.so"):
        run(["strip", "--strip-unneeded", "--remove-section=.comment", str(module)])
    (root / "usr/share").mkdir(parents=True)
    shutil.move(library / "share/doc", root / "usr/share")
    shutil.rmtree(library / "share")  # completion: document() puts it where shells look
    for told in library.glob("*.dist-info"):
        for name in ("RECORD", "direct_url.json", "INSTALLER", "REQUESTED"):
            (told / name).unlink(missing_ok=True)
    write(programs / "wbscope", LAUNCHER, 0o755)
    said = run(["objdump", "-p", str(programs / "wbscope-ingest")])
    needed = {name for name in re.findall(r"NEEDED +(\S+)", said) if "ld-linux" not in name}
    if unknown := needed - set(LINKED):
        raise BuildError(f"the program needs {', '.join(sorted(unknown))}, of no known package")


def document(root: Path, version: str) -> None:
    """Man pages of the help, completion, the licences, the list of changes."""
    shared = root / "usr/share"
    pages = WORK / "man"
    shutil.rmtree(pages, ignore_errors=True)
    date = run(["git", "log", "-1", "--format=%cs"]).strip()
    make = [str(ROOT / "tools/make_man.py"), "-o", str(pages), "--date", date]
    run([sys.executable, *make], library_of(root))
    # The program has the name of this page, too.
    helped = verbatim(run([str(root / "usr/bin/wbscope-ingest"), "--help"]))
    program = section("THE PROGRAM WBSCOPE\\-INGEST", helped)
    for page in sorted(pages.iterdir()):
        more = "\n".join([*program, ""]) if page.stem == "wbscope-ingest" else ""
        write_gz(shared / f"man/man1/{page.name}.gz", page.read_text(encoding="utf-8") + more)
    scripts = root / LIBRARY / "wbscope/cli/completions"
    for name, place in COMPLETIONS.items():
        write(shared / place, (scripts / name).read_text(encoding="utf-8"))
    doc = shared / "doc/wbscope"
    now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    entry = (
        f"wbscope ({version}) bookworm; urgency=medium\n\n  * See CHANGELOG.md of the project.\n"
    )
    write_gz(doc / "changelog.gz", f"{entry}\n -- {maintainer()}  {now}\n")
    write(doc / "copyright", copyright_text(root / LIBRARY))
    write(shared / "lintian/overrides/wbscope", OVERRIDES)


def library_of(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(root / LIBRARY), "PYTHONDONTWRITEBYTECODE": "1"}


def copyright_text(library: Path) -> str:
    """In Debian's form, with what comes along and on what terms its own files say that it is."""
    others = sorted(path.name.removesuffix(".dist-info") for path in library.glob("*.dist-info"))
    listed = "\n".join(f"  {name}" for name in others if not name.startswith("wbscope-"))
    return (
        "wbscope is licensed under the Apache License 2.0, see\n"
        "/usr/share/common-licenses/Apache-2.0.\nCopyright (C) 2026 the wbscope authors\n\n"
        f"/{LIBRARY} also has these libraries, each with its licence in the folder\n"
        f"NAME.dist-info beside it:\n{listed}\n"
        "and uPlot (MIT), with its licence in wbscope/render/assets.\n"
    )


def control(root: Path, version: str) -> None:
    """The fields that dpkg reads, and what is run after and before."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    upper = f"{sys.version_info[0]}.{sys.version_info[1] + 1}"
    depends = [f"python3 (>= {python})", f"python3 (<< {upper})", *sorted(set(LINKED.values()))]
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    description = textwrap.indent(
        textwrap.fill(
            "Answers from a kernel trace which tasks were throttled for dirtying pages, for how"
            " long and why, whether writers shared the disk fairly, and whether reclaim had to"
            " write pages itself. Reads files of trace-cmd and the text of ftrace and perf.",
            76,
        ),
        " ",
    )
    fields = f"""Package: wbscope
Version: {version}
Architecture: {architecture()}
Maintainer: {maintainer()}
Installed-Size: {size}
Section: admin
Priority: optional
Depends: {", ".join(depends)}
Suggests: python3-matplotlib, python3-scipy, trace-cmd
Description: dirty throttling and reclaim, explained from kernel traces
{description}
"""
    write(root / "DEBIAN/control", fields)
    write(root / "DEBIAN/postinst", POSTINST, 0o755)
    write(root / "DEBIAN/prerm", PRERM, 0o755)
    sums = (
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
        for path in sorted((root / "usr").rglob("*"))
        if path.is_file()
    )
    write(root / "DEBIAN/md5sums", "".join(sums))


def version_of() -> str:
    text = (ROOT / "analyzers/wbscope/base/version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.*)"', text, re.MULTILINE)
    if found is None:
        raise BuildError("version.py has no version")
    return found[1]


def maintainer() -> str:
    """Who made the last commit: the package has no other."""
    return run(["git", "log", "-1", "--format=%an <%ae>"]).strip()


def architecture() -> str:
    return run(["dpkg", "--print-architecture"]).strip()


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def write_gz(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
