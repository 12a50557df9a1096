"""Label files of other tools, into the labels of one small project."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import import_csv, import_label_studio
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Workspace
from tests.fuzz.mutations import hostile_name, mutated, mutated_json
from tests.fuzz.running import Said, TryOne

PROJECT = "one"


def _task(image_id: str, path: str, n_answers: int) -> dict[str, Any]:
    chosen = [{"type": "choices", "from_name": "class", "value": {"choices": ["cat"]}}]
    return {
        "id": 7,
        "data": {"image": f"/data/local-files/?d={path}", "image_id": image_id, "annotators": ["ada"]},
        "annotations": [{"completed_by": {"id": 3, "email": "a@b.c"}, "lead_time": 1.5, "result": chosen * n_answers}],
        "predictions": [{"score": 0.5, "result": chosen}],
    }


def _examples(ids: list[str], paths: list[str]) -> tuple[list[bytes], list[Any]]:
    """CSV files, and exports of Label Studio in both of its shapes."""
    tables = [
        "path,label,annotator\n" + "".join(f"{path},cat,bob\n" for path in paths[:4]),
        "image_id;label\n" + "".join(f"{image_id};dog\n" for image_id in ids[:4]),
        "image_id,label,label_source,pseudo_label\n" + "".join(f"{one},cat,model,dog\n" for one in ids[:3]),
    ]
    full = [_task(ids[0], paths[0], 1), _task(ids[1], paths[1], 1), _task(ids[2], paths[2], 2)]
    short = [{"image": path, "choice": "dog", "annotator": 1, "lead_time": 2} for path in paths[:3]]
    return [table.encode() for table in tables], [full, short]


def label_files(base: Path) -> TryOne:
    project = Workspace.open(base / "home").project(PROJECT)
    store, pool = open_store(project), project.everything()
    tables, exports = _examples([show_id(one) for one in pool.ids], pool.column("path").to_pylist())
    texts = [json.dumps(export).encode() for export in exports]

    def options(rng: Random) -> dict[str, Any]:
        annotator = hostile_name(rng) if rng.random() < 0.1 else f"a{rng.randrange(9)}"
        return {
            "annotator": annotator,
            "create_missing_classes": rng.random() < 0.3,
            "replace": rng.random() < 0.5,
            "actor": None if rng.random() < 0.8 else hostile_name(rng),
        }

    def try_one(rng: Random) -> list[Said]:
        if rng.random() < 0.4:
            result = import_csv(store, pool, mutated(rng, rng.choice(tables), tables), **options(rng))
        else:
            data = json.dumps(mutated_json(rng, rng.choice(exports)), ensure_ascii=rng.random() < 0.5)
            raw = data.encode("utf-8", "surrogatepass")
            raw = mutated(rng, raw, texts) if rng.random() < 0.3 else raw
            result = import_label_studio(store, pool, raw, **options(rng))
        for problem in result.problems:
            assert problem.value.isprintable()
        return [(problem.code, problem.message) for problem in result.problems]

    return try_one
