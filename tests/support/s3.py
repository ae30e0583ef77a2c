# SPDX-License-Identifier: Apache-2.0
"""A server of S3 on this machine, and the words that make Spark its client."""

from __future__ import annotations

import re
import shlex
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .hdfs import IVY, fetch_jars
from .runs import REPOSITORY
from .waits import GUARD_SECONDS

__all__ = ["S3", "jars_of_docs", "s3"]

_PYTHON = REPOSITORY / "build/s3/bin/python"
_DOCS = REPOSITORY / "docs/fleet.md"
# moto's own server answers to `Expect: 100-continue` what the client takes for a failure.
_SERVER = """
from moto.server import DomainDispatcherApplication, create_backend_app
from waitress.server import create_server
server = create_server(DomainDispatcherApplication(create_backend_app), host="127.0.0.1", port=0)
print(server.effective_port, flush=True)
server.run()
"""
_HEADERS = {
    # Of somebody: it asks who, and for no proof.
    "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request",
    # Else urllib says that data are a form, which moto would take apart.
    "Content-Type": "application/octet-stream",
}


@dataclass
class S3:
    """A bucket, and what Spark has to be told."""

    endpoint: str
    settings: tuple[str, ...]
    bucket: str = "lab"

    @property
    def uri(self) -> str:
        return f"s3a://{self.bucket}"

    def put(self, folder: Path, name: str) -> str:
        """All files of a folder; its URI there."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._ask(f"{name}/{path.relative_to(folder)}", path.read_bytes(), "PUT")
        return f"{self.uri}/{name}"

    def get(self, name: str, local: Path) -> Path:
        """A copy on this machine of all that has this name before it."""
        for key in self.keys(f"{name}/"):
            target = local / key.removeprefix(f"{name}/")
            if key.endswith("/"):  # a folder, as Hadoop's client marks it
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._ask(key))
        return local

    def keys(self, prefix: str) -> list[str]:
        """Names of objects."""
        found: list[str] = []
        after = ""
        while True:
            asked = {"list-type": "2", "prefix": prefix, "start-after": after}
            page = ElementTree.fromstring(self._ask("", query=urllib.parse.urlencode(asked)))
            new = [one.text or "" for one in page.iterfind("{*}Contents/{*}Key")]
            if not new:
                return found
            found += new
            after = new[-1]

    def make(self) -> None:
        """The bucket."""
        self._ask("", b"", "PUT")

    def _ask(
        self, key: str, data: bytes | None = None, method: str = "GET", query: str = ""
    ) -> bytes:
        url = f"{self.endpoint}/{self.bucket}/{urllib.parse.quote(key)}?{query}"
        request = urllib.request.Request(url.rstrip("?"), data, _HEADERS, method=method)
        with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
            told: bytes = answer.read()
        return told


@contextmanager
def s3(folder: Path) -> Iterator[S3]:
    """Skips where the server or the client's jars cannot be had."""
    if not _PYTHON.exists():
        pytest.skip("moto is not installed: make .venv/bin/.fleet-tools installs it")
    jars = jars_of_docs()
    fetch_jars(folder, jars, "hadoop-aws")
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen([_PYTHON, "-c", _SERVER], stdout=subprocess.PIPE, stderr=log)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().decode().strip()
        if not port:
            pytest.skip(f"moto does not start: {(folder / 's3.log').read_text()[-300:]}")
        endpoint = f"http://127.0.0.1:{port}"
        client = {
            "endpoint": endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "x",
            "secret.key": "y",
        }
        told = [f"{name}={value}" for name, value in jars.items()]
        told += [f"spark.hadoop.fs.s3a.{name}={value}" for name, value in client.items()]
        made = S3(endpoint, (*told, f"spark.jars.ivy={IVY}"))
        made.make()
        yield made
    finally:
        server.kill()
        server.communicate()


def jars_of_docs() -> dict[str, str]:
    """The settings that docs/fleet.md tells for S3, as a shell has them."""
    found = re.search(
        r"^```\n(--conf spark\.jars\.packages=.*?)^```", _DOCS.read_text(), re.M | re.S
    )
    assert found is not None
    words = [word for word in shlex.split(found[1].replace("\\\n", "")) if word != "--conf"]
    return dict(word.split("=", 1) for word in words)
