"""The workspace: one folder per project under one root, and what may be asked of it.

$SEMIPRUNE_HOME/                 default ./workspace
  secret                         random, readable by its owner only
  allowed_folders.json           from where images may be imported, where SEMIPRUNE_ROOTS does not say it
  <project>/
    project.json                 name, title, schema, pool settings, classes' home is the label store
    artifacts/<kind>-<number>/   complete, immutable results
    runs/<id>/                   jobs: settings, status, progress, log, checkpoints
    labels.sqlite                label events
    uploads/                     files that arrived by the browser, until imported
    exports/
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.errors import InvalidSettingError, MissingStepError, SemiPruneError, WorkspaceError
from semiprune_core.paths import PathGuard, roots_from_environment, shown
from semiprune_core.project import artifacts, migrations, rights
from semiprune_core.project.artifacts import Artifact, Draft
from semiprune_core.project.pool import Pool, PoolSettings, open_pool

ALLOWED = "allowed_folders.json"
HOME_VARIABLE = "SEMIPRUNE_HOME"
PROJECT = migrations.PROJECT
FIELDS: dict[str, type | tuple[type, ...]] = {"name": str, "title": str, "created": str, "pool": (dict, type(None))}
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
LONGEST_TITLE = 500
RESERVED = {"secret", "con", "prn", "aux", "nul"}


def default_root() -> Path:
    return Path(os.environ.get(HOME_VARIABLE) or "workspace").expanduser().absolute()


def slug_of(title: str) -> str:
    """The folder name for a project's title.

    >>> slug_of("My Clothing Photos!")
    'my-clothing-photos'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:64].strip("-")
    return slug if slug and slug not in RESERVED else f"project-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class Workspace:
    """All projects under one root."""

    root: Path

    @classmethod
    def open(cls, root: str | Path | None = None, *, make: bool = True) -> Workspace:
        """Open (and make, where needed) the workspace; a workspace on a read-only place is refused in words."""
        folder = Path(root).absolute() if root is not None else default_root()
        if make:
            with files.named_disk_errors(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @property
    def guard(self) -> PathGuard:
        """What may be read: ``SEMIPRUNE_ROOTS``, else the folders allowed so far; and what was uploaded.

        Whoever may not read the server's folders is left with what was uploaded.
        """
        roots = roots_from_environment() if rights.allows("read server folders") else ()
        closed = Path(os.path.realpath(self.root))
        named = self.allowed_folders() if roots is None else roots
        ours = (closed / folder.name for folder in (self.uploads_folder, self.weights_folder))
        return PathGuard(tuple(dict.fromkeys([*named, *ours])), closed)

    def allowed_folders(self) -> tuple[Path, ...]:
        """The folders (or single files) that somebody has allowed to be read, in the order in which they did."""
        path = self.root / ALLOWED
        if not path.exists():
            return ()
        return tuple(Path(folder) for folder in files.read_object(path, {"folders": list})["folders"])

    def allow_folder(self, folder: Path) -> None:
        """Remember that ``folder`` may be read from now on."""
        rights.check("read server folders")
        self._remember([*self.allowed_folders(), folder])

    def forget_folder(self, folder: Path) -> None:
        """Take the permission back; images that were imported from there stay in their projects."""
        rights.check("read server folders")
        self._remember([allowed for allowed in self.allowed_folders() if allowed != folder])

    def _remember(self, folders: list[Path]) -> None:
        files.write_json(self.root / ALLOWED, {"folders": [str(folder) for folder in dict.fromkeys(folders)]})

    @property
    def uploads_folder(self) -> Path:
        """Where files that arrive by the browser wait until they are imported."""
        return self.root / ".uploads"

    @property
    def weights_folder(self) -> Path:
        """Where a person may put weights of encoders."""
        return self.root / "weights"

    @property
    def secret(self) -> str:
        """A random secret of this installation, made at first use, readable by its owner only."""
        path = self.root / "secret"
        if not path.exists():
            aside = self.root / f".secret.{secrets.token_hex(4)}.part"
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32))
            with contextlib.suppress(FileExistsError):  # of several that come at once, the first one's counts
                os.link(aside, path)
            aside.unlink()
        return path.read_text("ascii").strip()

    def names(self) -> list[str]:
        """Names of all projects, in order; of whoever acts, those that are theirs."""
        return sorted(folder.name for folder in self.root.iterdir() if self._shows(folder.name))

    def _shows(self, name: str) -> bool:
        """Whether there is such a project for whoever acts."""
        return name in self and rights.allows("open", name)

    def __iter__(self) -> Iterator[Project]:
        return (self.project(name) for name in self.names())

    def __contains__(self, name: str) -> bool:
        """Whether there is such a project, damaged or not."""
        folder = self.root / name
        return bool(SLUG.fullmatch(name)) and ((folder / PROJECT).is_file() or (folder / "artifacts").is_dir())

    def project(self, name: str) -> Project:
        if not self._shows(name):
            projects = ", ".join(self.names()) or "none yet"
            raise WorkspaceError(f"There is no project '{shown(name)}'. Known: {projects}.", code="NO_PROJECT")
        folder = self.root / name
        config = migrations.migrate(folder)
        check_config(folder, config)
        if not (folder / migrations.BACKUP).exists():
            with contextlib.suppress(SemiPruneError, OSError):  # a read-only disk is no reason not to look
                migrations.write_config(folder, config)
        return Project(folder, config)

    def damaged(self, name: str) -> Project:
        """A handle on a project's folder alone, for one whose ``project.json`` cannot be read."""
        if not self._shows(name):
            return self.project(name)  # raises, with its sentence
        return Project(self.root / name, {"name": name, "title": name, "created": "", "pool": None})

    def create(self, title: str, *, name: str | None = None, pool: PoolSettings | None = None) -> Project:
        """Make an empty project. Its ``name`` (folder) comes from the title unless given."""
        rights.check("new project")
        title = checked_title(title)
        if name is None:
            base = name = slug_of(title)
            number = 1
            while (self.root / name).exists():
                number += 1
                name = f"{base[:58]}-{number}"
        if not SLUG.fullmatch(name) or name in RESERVED:
            raise WorkspaceError(
                f"'{shown(name)}' cannot be a project's name: use 1 to 64 lower-case letters, digits, - and _.",
                code="PROJECT_NAME",
            )
        config = {
            "schema": migrations.CURRENT,
            "name": name,
            "title": title,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "pool": pool.to_json() if pool else None,
        }
        _make_folder(self.root / name, config)
        return self.project(name)


def checked_title(title: str) -> str:
    """A project's title as it is kept; refused where it is empty, too long or not to be printed."""
    title = " ".join(title.split())
    if not title:
        raise WorkspaceError("A project needs a name. Type one.", code="PROJECT_NAME")
    if len(title) > LONGEST_TITLE or any(unicodedata.category(letter) in ("Cc", "Cs") for letter in title):
        raise WorkspaceError(
            f"'{shown(title)}' cannot be a project's name: use at most {LONGEST_TITLE} letters.",
            code="PROJECT_NAME",
        )
    return title


def check_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a ``project.json`` that does not describe the project in ``folder``."""
    files.check_fields(folder / PROJECT, config, FIELDS)
    try:
        PoolSettings.from_json(config["pool"] or {})
    except (InvalidSettingError, TypeError) as error:
        raise WorkspaceError(f"{folder / PROJECT} is damaged: 'pool' has a wrong value ({error}).") from error


def _make_folder(folder: Path, config: Mapping[str, Any]) -> None:
    """A new project's folder, which appears whole or not at all."""
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    with files.named_disk_errors(folder):
        try:
            for part in ("artifacts", "runs", "exports"):
                (aside / part).mkdir(parents=True)
            migrations.write_config(aside, config)
            os.rename(aside, folder)
        except (FileExistsError, NotADirectoryError):
            raise _taken(folder.name) from None
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise _taken(folder.name) from None
            raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _taken(name: str) -> WorkspaceError:
    return WorkspaceError(
        f"There is already a project '{name}'. Choose another name, or open that one.", code="PROJECT_EXISTS"
    )


@dataclass(frozen=True)
class Project:
    """One project's folder. Cheap to make; asks the disk each time, so two processes see the same."""

    folder: Path
    config: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.config["name"])

    @property
    def title(self) -> str:
        return str(self.config["title"])

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder.parent)

    @property
    def artifacts_folder(self) -> Path:
        return self.folder / "artifacts"

    @property
    def runs_folder(self) -> Path:
        return self.folder / "runs"

    @property
    def exports_folder(self) -> Path:
        return self.folder / "exports"

    @cached_property
    def pool_settings(self) -> PoolSettings | None:
        """Size and channels of the training cache; None until the first import has chosen them."""
        values = self.config["pool"]
        return PoolSettings.from_json(values) if values else None

    def rename(self, title: str) -> Project:
        """Another title; folder, artifacts and everything that names them stay as they are."""
        return self.update(title=checked_title(title))

    def update(self, **changes: Any) -> Project:
        """Write changed values into project.json; the new Project sees them."""
        rights.check("make", self.name)
        config = {**files.read_json(self.folder / PROJECT), **changes}
        migrations.write_config(self.folder, config)
        return Project(self.folder, config)

    @contextlib.contextmanager
    def draft(
        self, kind: str, *, settings: Mapping[str, Any], inputs: Mapping[str, str], seed: int | None = None
    ) -> Iterator[Draft]:
        rights.check("make", self.name)
        folder = self.artifacts_folder
        with artifacts.draft_artifact(folder, kind, settings=settings, inputs=inputs, seed=seed) as draft:
            yield draft
        rights.record(f"made {kind}", self.name)

    def artifacts(self, kind: str | None = None) -> list[Artifact]:
        return artifacts.list_artifacts(self.artifacts_folder, kind)

    def artifact(self, artifact_id: str) -> Artifact:
        if not artifacts.NAME.fullmatch(artifact_id) or not (self.artifacts_folder / artifact_id).is_dir():
            raise WorkspaceError(f"Project '{self.name}' has no artifact '{shown(artifact_id)}'.", code="NO_ARTIFACT")
        return artifacts.open_artifact(self.artifacts_folder / artifact_id)

    def latest(self, kind: str) -> Artifact | None:
        past = self.artifacts(kind)
        return past[-1] if past else None

    def has_pool(self) -> bool:
        return bool(artifacts.artifact_names(self.artifacts_folder, "pool"))

    def everything(self) -> Pool:
        """All imported images, every split."""
        return _opened(self._segments(), None)

    def pool(self) -> Pool:
        """The images to label, train on and prune."""
        return _opened(self._segments(), "pool")

    def test_set(self) -> Pool:
        """The images kept for testing; may be empty."""
        return _opened(self._segments(), "test")

    def _segments(self) -> tuple[tuple[Path, str], ...]:
        names = artifacts.artifact_names(self.artifacts_folder, "pool")
        if not names:
            raise MissingStepError(f"Project '{self.name}' has no images yet. Import some on the Pool page first.")
        return tuple((self.artifacts_folder / name, _segment_hash(self.artifacts_folder / name)) for name in names)


def _segment_hash(folder: Path) -> str:
    """A segment's content hash. Its manifest is read once: it never changes, only another may take its place."""
    try:
        stat = (folder / artifacts.MANIFEST).stat()
    except FileNotFoundError:
        return artifacts.open_artifact(folder).hash  # raises, with its sentence
    return _read_hash(folder, (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


@functools.lru_cache(maxsize=1024)
def _read_hash(folder: Path, _mark: tuple[int, ...]) -> str:
    return artifacts.open_artifact(folder).hash


@functools.lru_cache(maxsize=24)
def _opened(segments: tuple[tuple[Path, str], ...], split: str | None) -> Pool:
    """A pool, opened once per content: the hashes tell a new project from a deleted one of the same name."""
    if split is not None:
        return _opened(segments, None).split(split)
    return open_pool([artifacts.open_artifact(folder) for folder, _ in segments])
