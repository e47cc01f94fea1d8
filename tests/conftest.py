"""The toy study is found in this process too, as a third party's is: by its entry point."""

from __future__ import annotations

import sys

from tests.command import TOY

sys.path.insert(0, str(TOY))
