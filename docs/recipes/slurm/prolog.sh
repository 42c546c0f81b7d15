#!/bin/sh
# Prolog of slurmd: no job on a host on which the last health check found problems (slurm.conf.example has the lines).
#
# Slurm drains a node whose prolog fails, and puts the job back into the queue. Only status 20 says that problems were
# found and the node was drained with our reason; with any other one, for whatever cause, the job starts.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

output=$(timeout -k 2 15 envtune hook slurm-prolog --max-age 1800 --timeout 10 2>&1)
status=$?
[ "$status" -eq 20 ] && exit 1
[ "$status" -eq 0 ] || logger -t envtune "slurm-prolog ended with $status: $output" 2>/dev/null
exit 0
