"""The report: one HTML file that opens offline and tells what was done, how well, and at what cost."""

from semiprune_core.report.write import build_report, write_report

__all__ = ["build_report", "write_report"]
