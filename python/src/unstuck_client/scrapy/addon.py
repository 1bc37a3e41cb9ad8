"""The settings that put a Scrapy project under Unstuck."""

from __future__ import annotations

from scrapy.settings import BaseSettings

SCHEDULER = "unstuck_client.scrapy.Scheduler"
MIDDLEWARE = "unstuck_client.scrapy.SpiderMiddleware"
# Closest to the engine: what other middlewares drop or change is settled before.
MIDDLEWARE_ORDER = 0


class Addon:
    """An add-on for ``ADDONS``, in Scrapy from 2.10."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Sets the scheduler and the spider middleware."""
        settings.set("SCHEDULER", SCHEDULER, "addon")
        settings["SPIDER_MIDDLEWARES"].set(MIDDLEWARE, MIDDLEWARE_ORDER, "addon")
