"""Every error a person may meet, in one tree.

    SemiPruneError                 a sentence for a person: what, which, what to do
    ├── InvalidSettingError        a parameter outside its legal values
    ├── UnknownNameError           a name that no registry knows
    ├── MissingStepError           an earlier step of the line has not been done
    ├── InvalidDataError           data that contradicts itself or cannot be used
    │   └── SourceError            a source that must not or cannot be imported (has a `code`)
    ├── UnsafePathError            a path that leads outside the allowed roots (has a `code`)
    ├── WorkspaceError             a project or artifact that is missing, damaged or taken
    │   └── ConflictError          somebody else changed the same thing meanwhile
    ├── ForbiddenError             something for which whoever acts lacks the role
    ├── JobError                   a background job that cannot be started, stopped or resumed
    ├── OutOfMemoryError           the device has too little memory (names a smaller setting)
    └── DiskFullError              not enough space for what was to be written

Anything else that is raised is a defect of ours, not of the user's input.
"""

from __future__ import annotations


class SemiPruneError(Exception):
    """A user-facing error. The message says what was wrong, what was given and what to do.

    ``code`` is a stable, upper-case name for machines and tests, such as ``ZIP_UNSAFE_PATH``.
    """

    code: str = "ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the code when the error crosses a process boundary."""
        return _rebuild, (type(self), str(self), self.code)


def _rebuild(kind: type[SemiPruneError], message: str, code: str) -> SemiPruneError:
    return kind(message, code=code)


class InvalidSettingError(SemiPruneError, ValueError):
    code = "INVALID_SETTING"


class UnknownNameError(SemiPruneError, KeyError):
    code = "UNKNOWN_NAME"

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class MissingStepError(SemiPruneError):
    code = "MISSING_STEP"


class InvalidDataError(SemiPruneError, ValueError):
    code = "INVALID_DATA"


class SourceError(InvalidDataError):
    code = "SOURCE_REFUSED"


class UnsafePathError(SemiPruneError):
    code = "PATH_OUTSIDE_ROOT"


class WorkspaceError(SemiPruneError):
    code = "WORKSPACE"


class ConflictError(WorkspaceError):
    code = "CONFLICT"


class ForbiddenError(SemiPruneError):
    code = "FORBIDDEN"


class JobError(SemiPruneError):
    code = "JOB"


class OutOfMemoryError(SemiPruneError):
    code = "OUT_OF_MEMORY"


class DiskFullError(SemiPruneError):
    code = "DISK_FULL"
