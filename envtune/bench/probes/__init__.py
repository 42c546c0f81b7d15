"""Programs run by the job's Python: Python 3.6, its standard library, and the package they measure."""
