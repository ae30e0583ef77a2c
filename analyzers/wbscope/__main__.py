# SPDX-License-Identifier: Apache-2.0
"""python -m wbscope"""

import sys

from wbscope.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
