"""Workers that meet a picture they cannot survive: the faults of tests/importing/test_import.py."""

import os

from semiprune_core.importing import workers

CULPRIT = "cat/077.png"
_work = workers._work
_read = workers.read_entry


def hang(*args):
    def read(entry, **options):
        while entry.path == CULPRIT:  # busy, as an endless loop in a decoder would be
            pass
        return _read(entry, **options)

    workers.read_entry = read
    _work(*args)


def die(*args):
    def read(entry, **options):
        if entry.path == CULPRIT:
            os.abort()
        return _read(entry, **options)

    workers.read_entry = read
    _work(*args)


def never_begin(*args):
    os._exit(1)
