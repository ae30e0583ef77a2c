# SPDX-License-Identifier: Apache-2.0
"""A real HDFS on this machine: a name node and a data node in one JVM of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["IVY", "Hdfs", "fetch_jars", "hadoop_version", "hdfs"]

IVY = Path(__file__).resolve().parents[2] / "build/ivy"
_GROUP, _NAME = "org.apache.hadoop", "hadoop-client-minicluster"


class Hdfs:
    """Its URI, and copies to it and from it, by Hadoop's own client."""

    def __init__(self, gateway: Any, cluster: Any) -> None:
        self.gateway, self._jvm = gateway, gateway.jvm
        self.conf = cluster.getConfiguration(0)
        self._files = cluster.getFileSystem()
        self.uri = str(self._files.getUri().toString())

    def put(self, local: Path, path: str) -> str:
        """A folder or file of this machine; its URI there."""
        self._files.copyFromLocalFile(False, True, self._path(local.as_uri()), self._path(path))
        return f"{self.uri}{path}"

    def get(self, path: str, local: Path) -> Path:
        """A copy of it on this machine."""
        target = self._path(local.as_uri())
        self._files.copyToLocalFile(False, self._path(path), target, True)
        return local

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def names(self, path: str) -> set[str]:
        """What is in a folder; nothing where there is none."""
        if not self.exists(path):
            return set()
        return {str(one.getPath().getName()) for one in self._files.listStatus(self._path(path))}

    def delete(self, path: str) -> None:
        assert self._files.delete(self._path(path), False), path

    def _path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Skips where the jar cannot be had."""
    # In the loader of Hadoop's own classes, as spark.jars.packages does not have it.
    package = f"{_GROUP}:{_NAME}:{hadoop_version()}"
    (jar,) = fetch_jars(folder, {"spark.jars.packages": package}, _NAME)
    gateway = _jvm({"spark.driver.extraClassPath": str(jar)}, folder / "hdfs.log")
    try:
        jvm: Any = gateway.jvm
        hadoop = jvm.org.apache.hadoop.conf.Configuration()
        hadoop.set("hdfs.minidfs.basedir", str(folder / "hdfs"))
        # A client that is quicker than the data node's report waits for it, 400 ms by default.
        hadoop.set("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "10")
        builder = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(hadoop)
        cluster = builder.numDataNodes(1).build()
        cluster.waitActive()
        yield Hdfs(gateway, cluster)
        cluster.shutdown()
    finally:
        _end(gateway)


def fetch_jars(folder: Path, settings: dict[str, str], name: str) -> list[Path]:
    """As Spark fetches what `settings` tell, once; those of this name.

    Skips where they cannot be had.
    """
    pattern = f"jars/{_GROUP}_{name}-{hadoop_version()}.jar"
    if not list(IVY.glob(pattern)):
        IVY.mkdir(parents=True, exist_ok=True)
        try:
            _end(_jvm({**settings, "spark.jars.ivy": str(IVY)}, folder / "ivy.log"))
        except Exception as error:
            pytest.skip(f"{name} cannot be had: {error}")
    return list(IVY.glob(pattern))


def hadoop_version() -> str:
    """That of the client that PySpark brings."""
    import pyspark

    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    return client.stem.rpartition("-")[2]


def _jvm(settings: dict[str, str], log: Path) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    before = os.environ.get("SPARK_LOCAL_IP")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        with log.open("wb") as out:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            return launch_gateway(conf, {"stdout": out, "stderr": out})
    finally:
        if before is None:
            del os.environ["SPARK_LOCAL_IP"]
        else:
            os.environ["SPARK_LOCAL_IP"] = before


def _end(gateway: Any) -> None:
    gateway.shutdown()
    gateway.proc.kill()
    gateway.proc.wait()
