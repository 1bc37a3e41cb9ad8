"""Scrapy under Unstuck: ``kill -9`` loses no request, doubles no item and keeps the duplicate filter.

Scrapy from 2.10: ``ADDONS = {"unstuck_client.scrapy.Addon": 0}``. Scrapy 2.8 and 2.9:
``SCHEDULER = "unstuck_client.scrapy.Scheduler"`` and
``SPIDER_MIDDLEWARES = {"unstuck_client.scrapy.SpiderMiddleware": 0}``. Started with
``unstuck work --exec --targets --source SOURCE --workers 2 --drain -- scrapy crawl SPIDER``.
"""

from .addon import Addon
from .middleware import SpiderMiddleware
from .scheduler import Scheduler

__all__ = ["Addon", "Scheduler", "SpiderMiddleware"]
