"""Looks at a crawl that has ended, and acts. Prints what came, as one JSON document."""

import json
import sys

import unstuck_client
from unstuck_client import Operator, UnstuckError


def error_of(call):
    try:
        call()
    except UnstuckError as error:
        return [type(error).__name__, error.code]
    return None


if len(sys.argv) > 2:
    # By its arguments: a server that asks for a token.
    operator = Operator(sys.argv[1], sys.argv[2])
else:
    # By the environment.
    operator = unstuck_client

items = list(operator.items("stage"))
targets = list(operator.targets("stage"))
progress = operator.progress("stage", by="group")
print(
    json.dumps(
        {
            "check": operator.check("stage")["action"],
            "summary": operator.summary()["total"],
            "ended": operator.summary()["ended"],
            "recovered": operator.recover(dry_run=True)["count"],
            "recoveredNow": operator.recover(sources=["stage"])["applied"],
            "cleaned": operator.clean(dry_run=True)["count"],
            "history": [entry["action"] for entry in operator.history()],
            "items": [[item["key"], item["data"]] for item in items],
            "some": len(list(operator.items("stage", group="state-1", limit=3))),
            "targets": [[target["key"], target["status"], target["page"]] for target in targets],
            "done": len(list(operator.targets("stage", status=["done"], limit=5))),
            "failed": list(operator.targets("stage", status="failed")),
            "groups": [[row["group"], row["done"]] for row in progress["rows"]],
            "unknown": error_of(lambda: list(operator.items("stag"))),
            "unknownRun": error_of(lambda: operator.clean("00000000")),
        }
    )
)
