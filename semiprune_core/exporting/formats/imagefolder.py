"""A folder per class, as torchvision's ImageFolder reads it.

ImageFolder numbers the classes by the order of their folders, so a class that was pruned away shifts the numbers of
those after it: ``classes.txt`` lists all classes in the order of their folders, and a vanished one is warned of.
"""

from __future__ import annotations

from semiprune_core.exporting.base import FORMATS, Place
from semiprune_core.exporting.content import Content
from semiprune_core.exporting.formats.tables import small_csv
from semiprune_core.exporting.trees import folder_names
from semiprune_core.paths import shown


@FORMATS.register(
    "imagefolder",
    title="Image folders",
    explain="The kept images in one folder per class, as torchvision's ImageFolder and most trainers read them.",
    label_source="labels.csv in the folder, column label_source",
    options=("exact",),
    ways=("zip", "copy", "hardlink", "symlink"),
)
def write_imagefolder(content: Content, place: Place) -> None:
    folders = folder_names(content.class_names)
    place.expect(len(content.kept_idx))
    place.notes["class_folders"] = folders
    for name in content.vanished():
        place.warnings.append(
            f"The class '{shown(name)}' has no image in this coreset. ImageFolder numbers classes by their folders: "
            "take the numbers from classes.txt, or keep a few of each class when selecting."
        )
    table = []
    with place.tree() as tree:
        for positions, rows in content.batches(content.kept_idx, exact=True):
            for position, row in zip(positions.tolist(), rows.to_pylist(), strict=True):
                name = tree.image(folders[row["label"]], position)
                table.append([name, row["image_id"], row["label"], row["label_source"], row["confidence"]])
                place.advance(1)
        header = ["file_name", "image_id", "label", "label_source", "confidence"]
        tree.text("labels.csv", small_csv(header, table, exact=place.options.exact))
        tree.text("classes.txt", "".join(f"{folder}\n" for folder in sorted(folders.values())).encode())
