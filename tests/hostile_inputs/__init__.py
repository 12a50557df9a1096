"""Bad files, archives, manifests and arrays, made in code: one case each, with the error it must give.

A builder gets an empty folder two levels below a directory of the test's own (``<base>/allowed/<case>``), fills it and
returns what a person would ask to import. Things that must not be reached are put into ``<base>/outside``.
``stop`` means that the whole source is refused, ``listed`` that the bad part is listed and ``good.png`` comes through.
"""

from tests.hostile_inputs import arrays, folders, images, tables, uploads, zips

CASES = [*images.CASES, *folders.CASES, *zips.CASES, *tables.CASES, *arrays.CASES, *uploads.CASES]
