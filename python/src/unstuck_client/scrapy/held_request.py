"""A claimed request, and what has come of it so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

# In the meta of a request that is being worked on: the id of its target. A retry or a redirect
# that Scrapy makes of it keeps it.
MARK = "_unstuck_target"


class Failure:
    """Why a request failed, and whether it is worth another attempt."""

    __slots__ = ("text", "retry", "retry_after")

    def __init__(self, text: str, *, retry: bool = True, retry_after: str | None = None) -> None:
        self.text = text
        self.retry = retry
        self.retry_after = retry_after


class HeldRequest:
    """A target that this process has claimed, from its claim until it is saved, failed or released."""

    __slots__ = (
        "id", "key", "page", "data", "is_lost", "items", "dropped", "failure", "has_reached_spider",
        "is_continued", "is_sent", "children",
    )  # fmt: skip

    def __init__(self, claimed: Mapping[str, Any]) -> None:
        self.id: str = claimed["id"]
        self.key: str = claimed["key"]
        self.page: int = claimed["page"] + 1
        self.data: Any = claimed["data"]
        self.is_lost = False
        """Another process has it: what comes of it here is dropped."""
        self.items: list[Any] = []
        """Items that went through all pipelines."""
        self.dropped = 0
        """Items that a pipeline dropped."""
        self.failure: Failure | None = None
        """The first error. Nothing of a failed attempt is saved."""
        self.has_reached_spider = False
        """What the downloader makes of it is a retry or a redirect until then."""
        self.is_continued = False
        """A retry or a redirect of it waits for the downloader."""
        self.is_sent = False
        """What came of it is on its way."""
        self.children: Counter[str] = Counter()
        """How often each unfiltered request was yielded."""

    def fail(self, failure: Failure) -> None:
        """Records an error, if it is the first one."""
        if self.failure is None:
            self.failure = failure
