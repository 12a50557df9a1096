"""A process that labels, for the fault tests, and prints what was acknowledged.

`writer.py MODE URL PROJECT ANNOTATORS COUNT`, where URL is a database's, a SQLite file, or for "posted" a running
app's. Each of several annotators (separated by commas) gets a process of its own once the word go is read.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import traceback
import urllib.request
import uuid
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from semiprune_core.labeling import Event, LabelStore
from semiprune_core.labeling.database import Database
from semiprune_core.labeling.import_labels import import_csv
from tests.browser.serving import LET_IN


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def label_forever(store: LabelStore, annotator: str) -> None:
    """Labels, bulk labels and undos, without end: somebody will kill us."""
    for number in itertools.count():
        image = number % 50
        ids = [uuid.uuid4().hex for _ in range(3)]
        label = {"annotator": annotator, "action": "label", "class_id": number % 3}
        batch = [Event(event_id=ids[0], image_id=image, **label)]
        if number % 4 == 0:
            batch += [Event(event_id=name, image_id=100 + image, group_id=ids[0], **label) for name in ids[1:]]
        if number % 5 == 0:
            batch.append(Event(event_id=uuid.uuid4().hex, annotator=annotator, action="undo"))
        say(*[ack.event_id for ack in store.append(batch) if ack.status == "saved"])


def label_leased(store: LabelStore, annotator: str, count: int) -> None:
    """``count`` labels on leased images; then everybody settles the same ten images, each with a class of their own."""
    done = 0
    while done < count:
        for image in store.leases.lease(annotator, min(5, count - done)).tolist():
            event = Event(
                event_id=uuid.uuid4().hex,
                annotator=annotator,
                action="label",
                image_id=image,
                class_id=image % 3,
                expected_version="",
            )
            say("label", image, store.append([event])[0].status, event.event_id)
            done += 1
    mine = int(annotator.rsplit("-", 1)[1])
    for image in range(10):
        event = Event(
            event_id=uuid.uuid4().hex,
            annotator=annotator,
            action="settle",
            image_id=image,
            class_id=mine,
            expected_version="",
        )
        say("settle", image, store.append([event])[0].status, mine)


def label_posted(url: str, project: str, annotator: str, count: int, disputed: list[str]) -> None:
    """As :func:`label_leased`, but through the routes of a running app; the images to settle came with the word go."""

    def post(path: str, body: dict) -> dict:
        data = json.dumps({"annotator": annotator, **body}).encode()
        headers = {"Content-Type": "application/json", "X-SemiPrune-Token": os.environ["WRITER_TOKEN"], "Origin": url}
        headers |= LET_IN
        request = urllib.request.Request(f"{url}/studio/projects/{project}/labels{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def send(**event: object) -> None:
        event |= {"event_id": uuid.uuid4().hex, "expected_version": ""}
        [ack] = post("", {"events": [event]})["acks"]
        [again] = post("", {"events": [event]})["acks"]  # as after an answer that was lost
        assert again["status"] == ("already" if ack["status"] == "saved" else ack["status"]), again
        last = mine if event["action"] == "settle" else event["event_id"]
        say(event["action"], int(event["image_id"], 16), ack["status"], last)

    mine = int(annotator.rsplit("-", 1)[1])
    done = 0
    while done < count:
        for item in post("/queue", {"n": min(5, count - done)})["items"]:
            send(action="label", image_id=item["id"], class_id=int(item["id"], 16) % 3)
            done += 1
    for image in disputed:
        send(action="settle", image_id=image, class_id=mine)


def import_rows(store: LabelStore, annotator: str, count: int) -> None:
    ids = np.arange(count, dtype=np.uint64) + np.uint64(2**63)
    pool = SimpleNamespace(
        ids=ids,
        column={"path": pa.array([f"{number}.png" for number in range(count)])}.__getitem__,
        positions=lambda wanted: np.where(np.isin(wanted, ids), 0, -1),
    )
    text = "path,label\n" + "".join(f"{number}.png,c{number % 3}\n" for number in range(count))
    result = import_csv(store, pool, text.encode(), annotator=annotator)
    say("imported", result.n_saved, len(result.problems))


def work(mode: str, url: str, project: str, annotator: str, count: int, disputed: list[str]) -> None:
    if mode == "posted":
        label_posted(url, project, annotator, count, disputed)
        return
    database = Database.postgresql(url) if url.startswith("postgresql") else Database.sqlite(url)
    store = LabelStore(database, project)
    if mode == "forever":
        label_forever(store, annotator)
    elif mode == "leased":
        label_leased(store, annotator, count)
    else:
        import_rows(store, annotator, count)


def in_its_own_process(*given: object) -> int:
    """Forked, so that eight writers load everything once."""
    if (pid := os.fork()) != 0:
        return pid
    try:
        work(*given)
    except BaseException:  # noqa: BLE001 - this is where a process ends
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> int:
    mode, url, project, annotators, count = sys.argv[1:]
    if mode == "forever":
        work(mode, url, project, annotators, 0, [])
    say("ready")
    disputed = sys.stdin.readline().split()[1:]
    writers = [in_its_own_process(mode, url, project, name, int(count), disputed) for name in annotators.split(",")]
    return max(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) for writer in writers)


if __name__ == "__main__":
    sys.exit(main())
