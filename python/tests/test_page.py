"""What a page may hold, and how mistakes are reported."""

import json
import unittest
from decimal import Decimal

from unstuck_client import Page, PageRejected, UsageError
from unstuck_client.page import page_fields, page_json
from unstuck_client.protocol import Result, batches, failure, result_of
from unstuck_client.targets import HeldTarget


def held(**fields):
    claimed = {
        "id": "t1",
        "key": "austin",
        "group": None,
        "url": "https://site.example/austin/?page=1",
        "data": None,
        "page": 0,
        "next": None,
        "lastItemId": None,
        "cursor": None,
        "pageTarget": None,
        "attempt": 1,
    }
    return HeldTarget({**claimed, **fields})


class PageTest(unittest.TestCase):
    def assert_rejected(self, text, **fields):
        with self.assertRaises(PageRejected) as caught:
            Page(**{"next": None, **fields})
        self.assertIn(text, str(caught.exception))

    def test_a_page_has_either_next_or_done(self):
        with self.assertRaisesRegex(PageRejected, "neither next nor done"):
            Page(items=[])
        self.assert_rejected("both next and done", done=True)
        self.assertIs(Page(done=True).done, True)
        self.assertIsNone(Page(next=None).next)

    def test_a_mistyped_argument_is_named_with_the_one_that_was_meant(self):
        with self.assertRaisesRegex(UsageError, "pageTarget is unknown; did you mean page_target?"):
            Page(next=None, pageTarget=3)
        with self.assertRaisesRegex(UsageError, "itmes is unknown; did you mean items?"):
            Page(next=None, itmes=[])

    def test_arguments_of_another_type_are_rejected(self):
        self.assert_rejected("Page.next is 3", next=3)
        self.assert_rejected("Page.next is ''", next="")
        self.assert_rejected("items is a list, not dict", items={})
        self.assert_rejected("items is a list, not str", items="ab")
        self.assert_rejected("skipped is a whole number from 0, not -1", skipped=-1)
        self.assert_rejected("page_target is a whole number from 0, not True", page_target=True)
        self.assert_rejected("last_item_id is text, not 7", last_item_id=7)
        with self.assertRaisesRegex(PageRejected, "Page.done is 1"):
            Page(done=1)

    def test_an_item_needs_data_and_an_address_or_a_key(self):
        self.assert_rejected("item 2 is a str", items=[{"key": "a", "data": 1}, "b"])
        self.assert_rejected("item 1 has no data", items=[{"key": "a"}])
        self.assert_rejected("item 1 has neither a url nor a key", items=[{"data": 1}])
        self.assert_rejected(
            "item 1: link is unknown; there are: url, key, data",
            items=[{"link": "https://a.example", "data": 1}],
        )

    def test_items_may_come_from_a_generator(self):
        page = Page(items=({"key": str(n), "data": n} for n in range(3)), next=None)
        self.assertEqual([item["key"] for item in page.items], ["0", "1", "2"])

    def test_only_what_was_given_is_sent(self):
        self.assertEqual(page_fields(Page(done=False), 3, None), {"page": 3, "done": False})
        page = Page(
            items=[{"key": "a", "data": None}],
            next=None,
            cursor=None,
            last_item_id="a",
            skipped=2,
            page_target=9,
        )
        self.assertEqual(
            page_fields(page, 1, None),
            {
                "page": 1,
                "items": [{"key": "a", "data": None}],
                "next": None,
                "cursor": None,
                "lastItemId": "a",
                "skipped": 2,
                "pageTarget": 9,
            },
        )

    def test_what_json_cannot_hold_is_named_with_its_place(self):
        items = [{"key": "a", "data": {"prices": [1.5, Decimal("2.5")]}}]
        with self.assertRaisesRegex(PageRejected, r"items\[0\]\.data\.prices\[1\] is a Decimal"):
            page_json({"page": 1, "items": items})
        with self.assertRaisesRegex(PageRejected, "cursor.at is nan"):
            page_json({"page": 1, "cursor": {"at": float("nan")}})
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(PageRejected, "nested deeper than 32 levels"):
            page_json({"page": 1, "cursor": endless})

    def test_a_lone_surrogate_is_sent_as_an_escape(self):
        self.assertIn(b"\\ud800", page_json({"page": 1, "cursor": "\ud800"}))
        self.assertIn("ä€".encode(), page_json({"page": 1, "cursor": "ä€"}))


class ResultTest(unittest.TestCase):
    def test_a_relative_next_is_resolved_against_the_page(self):
        target = held(next="https://site.example/austin/?page=2", page=1)
        result = result_of(target, Page(next="?page=3"))
        self.assertEqual(
            json.loads(result.body),
            {"target": "t1", "page": 2, "next": "https://site.example/austin/?page=3"},
        )

    def test_one_page_may_be_returned_for_many_targets(self):
        empty = Page(next="more")
        first = result_of(held(), empty)
        second = result_of(held(id="t2", url="https://other.example/"), empty)
        self.assertEqual(first.next, "https://site.example/austin/more")
        self.assertEqual(second.next, "https://other.example/more")
        self.assertTrue(second.body)

    def test_what_is_no_page_is_rejected(self):
        with self.assertRaisesRegex(UsageError, "page\\(\\) returned NoneType for page 1"):
            result_of(held(), None)

    def test_the_errors_of_a_usage_are_not_retried(self):
        path, body = failure(held(), UsageError("wrong"))
        self.assertEqual(path, "/targets/t1/fail")
        self.assertEqual(json.loads(body), {"error": "wrong", "retry": False})

    def test_an_exception_is_sent_as_the_last_line_of_its_traceback(self):
        with self.assertLogs("unstuck_client", "WARNING") as logs:
            _, body = failure(held(), ValueError("no such city"))
        self.assertEqual(json.loads(body), {"error": "ValueError: no such city"})
        self.assertIn("page 1 of austin failed, attempt 1", logs.output[0])

    def test_pages_are_batched_by_size(self):
        results = [result_of(held(), Page(items=[{"key": "a", "data": "x" * size}], next=None))
                   for size in (10, 3_000_000, 3_000_000, 10)]  # fmt: skip
        self.assertEqual([len(batch) for batch in batches(results)], [2, 2])
        self.assertEqual(batches([]), [])


class HeldTargetTest(unittest.TestCase):
    def test_it_moves_on_after_a_saved_page(self):
        target = held(cursor={"n": 1}, attempt=3, lastItemId="a", pageTarget=4)
        target.advance(Page(next="x"), "https://site.example/x")
        self.assertEqual((target.page, target.attempt, target.cursor), (1, 1, {"n": 1}))
        self.assertEqual(target.address, "https://site.example/x")
        self.assertEqual((target.last_item_id, target.page_target), ("a", 4))
        target.advance(Page(done=False, cursor=None, last_item_id="b"), None)
        self.assertEqual((target.page, target.cursor, target.last_item_id), (2, None, "b"))
        self.assertEqual(target.address, "https://site.example/austin/?page=1")


if __name__ == "__main__":
    unittest.main()
