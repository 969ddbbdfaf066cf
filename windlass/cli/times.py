"""Moments as people read them: the local time of this machine, and how long something took."""

from datetime import datetime


def local_time(moment: float | str) -> str:
    """`2026-11-16 11:30:05`, from Unix seconds or from what the wire says; "" for none, what is no time as it is."""
    if not moment:
        return ""
    try:
        known = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment)
    except (ValueError, OverflowError, OSError):
        return str(moment)
    return known.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def local_minute(moment: float | str) -> str:
    """The same without its seconds, for lists."""
    return local_time(moment)[:16]


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`, `5 min`, `2 h 10 min`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    return f"{whole // 3600} h {whole % 3600 // 60} min".removesuffix(" 0 min")
