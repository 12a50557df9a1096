"""How classes are told apart: by number, and by every name they have, had, or were created under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from semiprune_core.records import UNLABELED


class Classes(Protocol):
    """Whatever speaks of classes: their names at one time, and their numbers, () or None where these are not known."""

    @property
    def class_names(self) -> tuple[str, ...]: ...

    @property
    def class_ids(self) -> tuple[int | None, ...]: ...


@dataclass(frozen=True)
class NamedClasses:
    """Classes by name and number."""

    class_names: tuple[str, ...]
    class_ids: tuple[int | None, ...]


@dataclass(frozen=True)
class ClassBook:
    """Every class by its number and by each name it has or had: how an artifact's classes are called today.

    ``names`` present names by number, merged classes' own among them; ``merged`` the number of the class that a merged
    one counts for; ``known_as`` numbers by name, present names first, then those that classes had before;
    ``created_as`` numbers by the name that a class was created under, the first of two.
    """

    names: Mapping[int, str]
    merged: Mapping[int, int]
    known_as: Mapping[str, int]
    created_as: Mapping[str, int]

    def ids_of(self, names: Iterable[str]) -> tuple[int | None, ...]:
        """The numbers behind names, old or present; None for a name that no class ever had."""
        return tuple(self.known_as.get(name) for name in names)

    def reference_ids(self, names: Sequence[str]) -> tuple[int | None, ...]:
        """The numbers behind all ``names`` of a pool's reference classes, whatever these are called since.

        A name belongs to the class that was created under it; else to one that has or had it, and was created under
        none of ``names``.
        """
        tied = {self.created_as[name] for name in names if name in self.created_as}
        others = {name: number for name, number in self.known_as.items() if number not in tied}
        return tuple(self.created_as.get(name, others.get(name)) for name in names)

    def without_class(self, names: Sequence[str]) -> list[str]:
        """Those of a pool's reference ``names`` that no class stands for."""
        return [name for name, number in zip(names, self.reference_ids(names), strict=True) if number is None]

    def names_now(self, class_ids: Sequence[int | None], recorded: Sequence[str]) -> tuple[str, ...]:
        """What classes that an artifact ``recorded`` are called today, each by another name.

        A merged one has the name of the other class, unless one of them has it already. A class that is gone never has
        the name of one that is there.
        """
        live = {name for number, name in self.names.items() if number not in self.merged}
        own = [name if number is None else self.names.get(number, name) for number, name in zip(class_ids, recorded)]
        present: list[str] = []
        for number, name in zip(class_ids, own, strict=True):
            target = self.names.get(self.merged.get(number, number), name) if number is not None else name
            free = target not in present and (target == name or target not in own)
            name = target if free else name
            is_gone = number is not None and (number not in self.names or (number in self.merged and not free))
            while name in present or (is_gone and name in live):
                name += " (removed)"
            present.append(name)
        return tuple(present)

    def places(
        self,
        class_ids: Sequence[int | None],
        names: Sequence[str],
        wanted_ids: Sequence[int | None],
        wanted: Sequence[str],
    ) -> list[int]:
        """For each class its place among the ``wanted`` ones, -1 where it has none.

        As the same class, else as the one that it counts for today; by name what never was a class here.
        """
        by_id = {class_id: place for place, class_id in enumerate(wanted_ids) if class_id is not None}
        by_name = {name: place for place, name in enumerate(wanted) if wanted_ids[place] not in self.names}
        found = []
        for class_id, name in zip(class_ids, names, strict=True):
            if class_id is None:
                found.append(by_name.get(name, UNLABELED))
            else:
                found.append(by_id.get(class_id, by_id.get(self.merged.get(class_id, class_id), UNLABELED)))
        return found

    def merged_places(self, class_ids: Sequence[int | None], names: Sequence[str], wanted: Sequence[str]) -> list[int]:
        """For each class, by its present one of ``names`` (all among ``wanted``), the place of the class that it counts
        for today."""
        place = {name: number for number, name in enumerate(wanted)}
        found = []
        for class_id, name in zip(class_ids, names, strict=True):
            target = self.names[self.merged[class_id]] if class_id is not None and class_id in self.merged else name
            found.append(place.get(target, place[name]))
        return found


NO_CLASSES = ClassBook({}, {}, {}, {})
