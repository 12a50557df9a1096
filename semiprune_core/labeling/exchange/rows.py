"""What the files of other tools come down to: one label after another, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core.errors import InvalidDataError

MOST_ROWS = 1_000_000
MOST_LISTED = 100_000
"""Problems that are listed with their row; more of them are counted."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A row that was not taken over. ``row`` counts from 1 and includes a CSV's header, as a spreadsheet shows it."""

    row: int
    value: str
    code: str
    message: str


class Problems(list[RowProblem]):
    """The rows that were not taken over; those beyond the first :data:`MOST_LISTED` are only counted."""

    n_unlisted = 0

    def append(self, problem: RowProblem) -> None:
        if len(self) < MOST_LISTED:
            super().append(problem)
        else:
            self.n_unlisted += 1

    @property
    def n_rows(self) -> int:
        return len(self) + self.n_unlisted


@dataclass(frozen=True, slots=True)
class Row:
    """One label to take over: an image by id or by path, a class by name (None for skipped).

    ``spreadsheet`` cells may carry the apostrophe of :func:`semiprune_core.project.spreadsheet.safe_cell`.
    ``suggested`` is the model's answer that was in view ("" where only an earlier label was); a row that is not an
    ``is_answer`` only repeats it where it was not changed. ``given`` is the label people had given when the file went
    out, where the file says so.
    """

    row: int
    image_id: str | None
    path: str | None
    label: str | None
    annotator: str
    lead_time_ms: int | None = None
    spreadsheet: bool = False
    suggested: str | None = None
    given: str | None = None
    is_answer: bool = True


def decode_text(data: bytes) -> str:
    """UTF-8 (with or without a mark) or UTF-16 with its mark; anything else is refused with its line."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InvalidDataError(
                "The file looks like UTF-16 but is damaged. Save it as UTF-8.", code="ENCODING"
            ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidDataError(
            f"The file is not UTF-8: line {line} holds the byte 0x{data[error.start]:02x}. Save it as UTF-8.",
            code="CSV_ENCODING",
        ) from error
