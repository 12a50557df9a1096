"""How well a head does on the labels so far, kept up to date while people label.

A process of its own follows a project's labels while its Label page is open (``watch`` starts it, ``follow`` is what it
does), fits a head on the project's features after every few labels and writes a small report. ``standing`` is what to
show at any moment, or why there is nothing to show; ``report_now`` makes a report here and now. Nothing loads torch.
"""

from semiprune_core.live.follow import FOLLOWED, guesses, report_now, standing, watch
from semiprune_core.live.report import measure

__all__ = ["FOLLOWED", "guesses", "measure", "report_now", "standing", "watch"]
