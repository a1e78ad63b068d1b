"""The figures of a run as tables, plots and pages."""
