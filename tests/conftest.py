"""Helpers of the tests are plain modules beside them; make those of every folder importable."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
for _folder in (_HERE, _HERE / "hdl"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))
