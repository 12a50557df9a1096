"""TensorBoard event files, in the project's folder ``tensorboard``, one folder for each run.

Written by TensorBoard's own writer, without torch: the app follows coresets too, and it never loads torch.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semiprune_core.tracking.base import TRACKERS, Point, TrackedRun

FOLDER = "tensorboard"
QUEUE, FLUSH_SECONDS = 100, 20


@TRACKERS.register("tensorboard", title="TensorBoard", needs="tensorboard", address="")
class TensorBoard:
    """Scalars by name, settings and manifests as texts."""

    def __init__(self, run: TrackedRun, address: str) -> None:
        writers = importlib.import_module("tensorboard.summary.writer.event_file_writer")
        self._events: Any = importlib.import_module("tensorboard.compat.proto.event_pb2")
        self._summaries: Any = importlib.import_module("tensorboard.compat.proto.summary_pb2")
        self._tensors: Any = importlib.import_module("tensorboard.compat.proto.tensor_pb2")
        self._shapes: Any = importlib.import_module("tensorboard.compat.proto.tensor_shape_pb2")
        folder = run.project_folder / FOLDER / run.id
        self._writer = writers.EventFileWriter(str(folder), max_queue_size=QUEUE, flush_secs=FLUSH_SECONDS)
        rows = [f"| {name} | {value} |" for name, value in run.flat_settings().items()]
        self._text("settings", "\n".join([f"**{run.title}**", "", "| setting | value |", "|---|---|", *rows]))
        self._writer.flush()

    def points(self, points: Sequence[Point]) -> None:
        for point in points:
            values = [self._summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in point.values.items()]
            self._add(point.time, point.step, values)

    def file(self, path: Path) -> None:
        self._text(f"{path.parent.name}/{path.name}", f"```json\n{path.read_text('utf-8')}\n```")

    def end(self, state: str) -> None:
        self._text("state", state)
        self._writer.close()

    def _text(self, tag: str, text: str) -> None:
        plugin = self._summaries.SummaryMetadata.PluginData(plugin_name="text")
        shape = self._shapes.TensorShapeProto(dim=[self._shapes.TensorShapeProto.Dim(size=1)])
        tensor = self._tensors.TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
        metadata = self._summaries.SummaryMetadata(plugin_data=plugin)
        self._add(time.time(), 0, [self._summaries.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])

    def _add(self, seconds: float, step: int, values: list[Any]) -> None:
        summary = self._summaries.Summary(value=values)
        self._writer.add_event(self._events.Event(wall_time=seconds, step=step, summary=summary))
