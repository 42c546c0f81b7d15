#!/bin/sh
# HealthCheckProgram of slurmd: checks the host, drains its node or resumes it (slurm.conf.example has the lines).
#
# envtune ends within --timeout, timeout(1) where Python itself hangs, slurmd after 60 s. What is printed is in the
# host's log already, except where envtune cannot even start. slurmd gets 0 in any case: a newer one does not register
# the node before.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

output=$(timeout -k 5 50 envtune hook slurm-health --timeout 30 2>&1)
status=$?
[ "$status" -eq 0 ] || logger -t envtune "slurm-health ended with $status: $output" 2>/dev/null
exit 0
