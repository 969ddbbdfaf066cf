"""What one check of `windlass doctor` found."""

from typing import Literal

import msgspec

Level = Literal["OK", "WARN", "FAIL"]


class Finding(msgspec.Struct, frozen=True):
    """`FAIL` must be mended, `WARN` is worth knowing; `says` is one sentence, with what to do."""

    level: Level
    what: str
    says: str
