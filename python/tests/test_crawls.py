"""The decorator: what it accepts, and what it says about the rest."""

import contextlib
import io
import json
import os
import unittest
from unittest import mock

from unstuck_client import Crawl, Page, UsageError, crawl, run
from unstuck_client.crawls import define
from unstuck_client.planning import Batch, halves, planning_error, targets_body
from unstuck_client.targets import target_json


class Minimal:
    def targets(self):
        return []

    def page(self, ctx):
        return Page(next=None)


class DecoratorTest(unittest.TestCase):
    def test_options_are_kept(self):
        @crawl(source="pages", concurrency=5, initial_cursor={"n": 1})
        class Pages(Minimal):
            pass

        definition = define(Pages)
        self.assertEqual(
            (definition.source, definition.concurrency, definition.initial_cursor),
            ("pages", 5, {"n": 1}),
        )
        self.assertFalse(definition.is_async)

    def test_wrong_options_raise_at_once(self):
        cases = [
            ({"source": "a", "concurency": 2}, "concurency is unknown; did you mean concurrency?"),
            ({"source": ""}, "the name of the source"),
            ({"source": Minimal}, "the name of the source"),
            ({"source": "a", "concurrency": 0}, "a whole number from 1 to 1000, not 0"),
            ({"source": "a", "concurrency": "3"}, "not '3'"),
        ]
        for options, text in cases:
            with self.subTest(options), self.assertRaises(UsageError) as caught:
                crawl(**options)
            self.assertIn(text, str(caught.exception))

    def test_missing_and_mistyped_methods_raise_at_once(self):
        class NoPage:
            def targets(self):
                return []

        class Mistyped(Minimal):
            def tear_down(self):
                pass

        class Yields(Minimal):
            def page(self, ctx):
                yield Page(next=None)

        class Mixed(Minimal):
            async def setup(self):
                pass

        for cls, text in [
            (NoPage, "NoPage has no method page"),
            (Mistyped, "Mistyped.tear_down would never be called; did you mean teardown?"),
            (Yields, "Yields.page yields"),
            (Mixed, "Mixed.setup is async def, and page is not"),
            (3, "decorates a class"),
        ]:
            with self.subTest(text), self.assertRaises(UsageError) as caught:
                crawl("a")(cls)
            self.assertIn(text, str(caught.exception))

    def test_helpers_of_the_class_are_no_mistake(self):
        @crawl("a")
        class WithHelpers(Minimal):
            page_size = 10

            def parse(self, html):
                return html

            def pages(self):
                return 3

        self.assertTrue(callable(WithHelpers.run))

    def test_methods_take_an_argument_if_they_want_one(self):
        @crawl("a")
        class Takes(Minimal):
            def targets(self, ctx):
                return [ctx]

            def teardown(self, resources=None):
                return resources

        definition = define(Takes)
        self.assertEqual(definition.targets("context"), ["context"])
        self.assertEqual(definition.teardown("resources"), "resources")
        self.assertIsNone(definition.setup())

    def test_the_base_class_has_the_same_run(self):
        @crawl("a")
        class Typed(Crawl, Minimal):
            pass

        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            Typed.run()


class OutsideTest(unittest.TestCase):
    """Programs that Unstuck did not start say how to start them."""

    def run_with(self, **environ):
        @crawl("yellow pages")
        class Pages(Minimal):
            pass

        output = io.StringIO()
        clean = {name: one for name, one in os.environ.items() if not name.startswith("UNSTUCK")}
        with (
            mock.patch.dict(os.environ, {**clean, **environ}, clear=True),
            mock.patch("sys.argv", ["my crawl.py", "--fast"]),
            contextlib.redirect_stderr(output),
            self.assertRaises(SystemExit) as caught,
        ):
            Pages.run()
        self.assertEqual(caught.exception.code, 2)
        return output.getvalue()

    def test_a_crawl_prints_the_command_and_exits_with_2(self):
        self.assertIn(
            "unstuck work --exec --targets --source 'yellow pages' --workers 2 "
            "-- python3 'my crawl.py' --fast\n",
            self.run_with(),
        )

    def test_a_crawl_under_the_wrong_command_says_so(self):
        text = self.run_with(UNSTUCK_URL="http://127.0.0.1:1/r", UNSTUCK_API="run")
        self.assertIn("was started for the API of a run, and uses that of a worker", text)

    def test_a_crawl_of_another_source_says_so(self):
        text = self.run_with(
            UNSTUCK_URL="http://127.0.0.1:1/r", UNSTUCK_API="worker", UNSTUCK_SOURCE="other"
        )
        self.assertIn("for the source other, but it is about yellow pages", text)

    def test_a_run_raises_the_error(self):
        with mock.patch.dict(os.environ, {}, clear=True), mock.patch("sys.argv", ["a.py"]):
            with self.assertRaisesRegex(UsageError, "unstuck run portal-a -- python3 a.py"):
                run("portal-a")


class TargetsTest(unittest.TestCase):
    def test_a_target_is_an_address_or_a_dict(self):
        self.assertEqual(json.loads(target_json("https://a.example")), {"url": "https://a.example"})
        full = {"key": "a", "group": "CA", "url": "https://a.example", "data": {"n": 1}}
        self.assertEqual(json.loads(target_json(full)), full)
        self.assertEqual(json.loads(target_json({"key": "a", "group": None})), {"key": "a"})

    def test_mistakes_are_named(self):
        for target, text in [
            (("a", "b"), "targets() yielded tuple"),
            ({"kye": "a"}, "kye is unknown; did you mean key?"),
            ({"group": "CA"}, "neither a key nor a url"),
            ({"key": "a", "data": {"at": {1}}}, "data.at is a set"),
        ]:
            with self.subTest(text), self.assertRaises(UsageError) as caught:
                target_json(target)
            self.assertIn(text, str(caught.exception))

    def test_a_batch_is_full_at_2000_targets(self):
        batch = Batch()
        with mock.patch("time.monotonic", return_value=batch._since):
            full = [batch.add({"key": str(n)}) for n in range(2_000)]
        self.assertEqual((full.count(True), full[-1]), (1, True))
        taken = batch.take()
        self.assertEqual(len(json.loads(targets_body(taken))["targets"]), 2_000)
        self.assertEqual(batch.take(), [])

    def test_a_batch_that_is_too_large_is_halved(self):
        too_large = UsageError("8 MB", code="BODY_TOO_LARGE")
        self.assertEqual(halves([b"1", b"2", b"3"], too_large), ([b"1"], [b"2", b"3"]))
        with self.assertRaises(UsageError):
            halves([b"1"], too_large)
        with self.assertRaises(UsageError):
            halves([b"1", b"2"], UsageError("other"))

    def test_an_error_of_targets_says_that_nothing_is_lost(self):
        error = planning_error("a", KeyError("city"))
        self.assertEqual(
            str(error),
            "targets() of a raised KeyError: 'city'. "
            "Nothing is lost: fix it, and the next start calls it again.",
        )


if __name__ == "__main__":
    unittest.main()
