"""Carry out plans: journal, write, read again, undo. It decides nothing; the plan says what to do.

Standard library only, Python 3.6 syntax, and imports only among its own modules, so that it can be assembled into one
file and run on a host where nothing is installed. Every top-level name therefore occurs in one module only.

Every operation is logged ahead: its intent, with everything needed to undo it (bytes, owner, mode, times, extended
attributes), is on disk and fsynced before the first byte of the host changes. Each operation of a killed run is
therefore always one of: not begun, done, or begun with the original available; `history.interrupted_runs` finds it,
`recover.resume_run` or `recover.undo_run` ends it. Nothing else is undone automatically, except a change that fails,
which undoes itself.

Layout of the state directory (root: /var/lib/envtune, else $XDG_STATE_HOME/envtune; $ENVTUNE_STATE wins):

    lock                      flock held by the one run that may write; its text says which
    runs/<run>/journal.jsonl  one JSON object a line, `{"crc": ..., "record": {...}}`; a torn last line is ignored
    runs/<run>/NNNN.orig      the bytes that were there before an operation
    runs/<run>/output.log     what commands printed
    runs/<run>/reserve        disk space that the journal, also of an undo, uses when the disk is full

Root's runs on a host also exclude each other by /run/envtune.lock, whatever their state directory.

Records of a journal: begin (plan, who, and `sequence`, the order of runs independent of the clock), then for every
operation intent, done or same (nothing to write), reverting, reverted, stuck (could not be undone); change (the result
of one change), end; undo-begin, set-aside (a copy of what others wrote), undo-end; verified (the outcome of the checks
after the run); torn (a line that a killed run left unfinished).

SIGINT, SIGTERM and SIGHUP end a run at points where its step can be reverted: the commands of the step and their
descendants are killed, the step is reverted, no further one is begun, and the journal is closed with the signal number.
A step that is being reverted is never interrupted.
"""
