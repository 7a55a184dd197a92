"""Reports of studies: one HTML file with figures, tables and linked plots."""

from jaxmbd.report.write import write_report

__all__ = ["write_report"]
