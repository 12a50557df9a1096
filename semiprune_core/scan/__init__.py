"""What is odd in a pool: near-duplicates, and images that are blurred, dark, blank, odd-sized or off-topic.

It exports :func:`scan`, which looks at every image, and :class:`ScanRun`, which says what was found.
Nothing is dropped by itself.
"""

from semiprune_core.scan.near import LEAST, THRESHOLD
from semiprune_core.scan.oddities import ODDITIES
from semiprune_core.scan.run import ScanRun, groups_of_pool, latest_scan, needed_scan, scan, sees_more_again
from semiprune_core.scan.tables import Groups, found_csv, grouped, groups_csv

__all__ = [
    "LEAST",
    "ODDITIES",
    "THRESHOLD",
    "Groups",
    "ScanRun",
    "found_csv",
    "grouped",
    "groups_csv",
    "groups_of_pool",
    "latest_scan",
    "needed_scan",
    "scan",
    "sees_more_again",
]
