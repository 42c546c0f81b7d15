"""Which Python a job uses and what is installed in it, found by reading files only.

`host` is anything that has read(path), read_bytes(path), stat(path, follow) with .kind and .size, readlink(path) and
listdir(path), and raises OSErrors: the live machine, a recorded one, or the recorder, so that a recording contains
exactly what the audit reads. `variables` are the job's, `cwd` its working directory.
"""
