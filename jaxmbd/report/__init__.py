"""Reports: one HTML file with figures, tables and linked plots."""

from jaxmbd.report.write import ReportPage, write_report

__all__ = ["ReportPage", "write_report"]
