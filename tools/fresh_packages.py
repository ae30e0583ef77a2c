# SPDX-License-Identifier: Apache-2.0
"""What is asked of a wheel and of a package for Debian in a root that has no compiler."""

from __future__ import annotations

__all__ = ["PACKAGED"]

# Every verb that the base install promises works; one that wants an extra says so.
_ASKED = """
for compiler in cc gcc g++ c++ clang; do
  if command -v "$compiler"; then exit 9; fi
done
cd /srv
export WBSCOPE_CACHE_DIR=/srv/cache
time wbscope demo
wbscope queries > /dev/null
wbscope query throttle_by_task wbscope-demo
wbscope report wbscope-demo -o demo.html
wbscope timeline wbscope-demo -o demo.pftrace
wbscope convert wbscope-demo -o every.pftrace
wbscope sql wbscope-demo 'SELECT count(*) AS calls_count FROM wb_throttle'
if wbscope plot wbscope-demo -o plots 2> said; then exit 9; fi
grep "error.missing-library" said
"""
# The goal of make, what it makes, and commands for bash with the name of that as $1.
PACKAGED = (
    (
        "wheel",
        "*.whl",
        """
apt-get -qq update
apt-get -qq install --no-install-recommends pipx > /dev/null
export PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/opt/bin
PATH=/opt/bin:$PATH
time pipx install "./$1"
du -sm --exclude=pip --exclude=setuptools --exclude=pkg_resources --exclude='pip-*' \\
  --exclude='setuptools-*' /opt/pipx/venvs/wbscope
"""
        + _ASKED
        + """
time pipx install --force "/srv/wbscope/$1[gate]"
du -sm /opt/pipx/venvs/wbscope
wbscope gate --budget 'throttle_summary.pause_p99_ns <= 300ms' wbscope-demo
""",
    ),
    (
        "deb",
        "*.deb",
        """
apt-get -qq update
time apt-get -qq install --no-install-recommends "./$1" > /dev/null
dpkg -s wbscope | grep Installed-Size
"""
        + _ASKED
        + """
apt-get -qq install --no-install-recommends python3-scipy > /dev/null
wbscope gate --budget 'throttle_summary.pause_p99_ns <= 300ms' wbscope-demo
apt-get -qq purge wbscope > /dev/null
test ! -e /usr/lib/wbscope
""",
    ),
)
