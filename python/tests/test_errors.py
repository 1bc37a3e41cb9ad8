"""Exceptions: by code, and those that a page raises."""

import unittest
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import unstuck_client
from unstuck_client import LeaseLost, NotFound, RetryLater, UnstuckError, UsageError
from unstuck_client.errors import error_of
from unstuck_client.protocol import failure
from test_page import held


class CodeTest(unittest.TestCase):
    def test_the_code_decides_the_class(self):
        lost = error_of("LEASE_LOST", "gone")
        self.assertIsInstance(lost, LeaseLost)
        self.assertEqual((lost.code, str(lost)), ("LEASE_LOST", "gone"))

    def test_codes_of_the_command_line_are_the_same_without_their_prefix(self):
        self.assertIsInstance(error_of("E_NOT_FOUND", "x"), NotFound)
        self.assertEqual(error_of("E_NOT_FOUND", "x").code, "NOT_FOUND")

    def test_an_unknown_code_is_kept(self):
        error = error_of("SOMETHING_NEW", "x")
        self.assertIs(type(error), UnstuckError)
        self.assertEqual(error.code, "SOMETHING_NEW")

    def test_every_exported_name_exists(self):
        for name in unstuck_client.__all__:
            self.assertTrue(hasattr(unstuck_client, name), name)


class RetryLaterTest(unittest.TestCase):
    def test_a_time_may_be_given_in_many_ways(self):
        cases = [
            (30, "30000ms"),
            (0.5, "500ms"),
            (-3, "0ms"),
            (timedelta(minutes=2), "120000ms"),
            ("120", "120"),
            (" 5m ", "5m"),
            ("Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:00 GMT"),
            (SimpleNamespace(headers={"Retry-After": "7"}), "7"),
            (SimpleNamespace(headers={"retry-after": "7"}), "7"),
        ]
        for after, text in cases:
            self.assertEqual(RetryLater(after=after).after, text, after)

    def test_a_date_is_the_time_until_then(self):
        soon = RetryLater(after=datetime.now(timezone.utc) + timedelta(seconds=60)).after
        self.assertRegex(soon, r"^(60000|599\d\d)ms$")
        self.assertEqual(RetryLater(after=datetime(2001, 1, 1)).after, "0ms")

    def test_without_a_readable_time_the_usual_pause_applies(self):
        for after in (None, "", "later", float("nan"), SimpleNamespace(headers={})):
            self.assertIsNone(RetryLater(after=after).after, after)
        self.assertEqual(failure(held(), RetryLater("busy"))[1], b'{"error":"busy"}')

    def test_anything_else_raises_at_once(self):
        for after in (object(), True, [3]):
            with self.assertRaisesRegex(UsageError, "RetryLater\\(after=…\\) takes seconds"):
                RetryLater(after=after)
        with self.assertRaisesRegex(UsageError, "takes a message"):
            RetryLater(30)


if __name__ == "__main__":
    unittest.main()
