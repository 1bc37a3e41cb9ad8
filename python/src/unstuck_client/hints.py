"""Messages for mistyped names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from .errors import UsageError


def closest(name: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    """Returns the known name that was probably meant, if there is one."""
    by_plain = {_plain(one): one for one in known}
    close = get_close_matches(_plain(name), by_plain, n=1, cutoff=cutoff)
    return by_plain[close[0]] if close else None


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Returns the hint for a name that is not known: the one that was probably meant, or all."""
    meant = closest(name, known)
    return f"did you mean {meant}?" if meant else f"there are: {', '.join(known)}."


def reject_unknown(where: str, unknown: Iterable[str], known: Collection[str]) -> None:
    """Raises the error for arguments or fields that are not known, if there are any."""
    problems = [f"{name} is unknown; {did_you_mean(name, known)}" for name in unknown]
    if problems:
        raise UsageError(f"{where}: {' '.join(problems)}")


def _plain(name: str) -> str:
    """`pageTarget` and `page_target` are the same name in two languages."""
    return name.replace("_", "").lower()
