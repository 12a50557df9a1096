"""Workers that meet a picture they cannot survive: the faults of tests/importing/test_import.py."""

import os

from semiprune_core.importing import images, workers

CULPRIT = "cat/077.png"
_work = workers._work
_read = workers.read_entry
_check_size = images._check_size


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


def swell(*args):
    def check(size, name, *most):
        if name == CULPRIT:
            bytearray(2 << 30)  # not touched: only the limit keeps it from being had
        _check_size(size, name, *most)

    images._check_size = check
    _work(*args)


def never_begin(*args):
    os._exit(1)
