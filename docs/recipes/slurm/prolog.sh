#!/bin/sh
# Prolog of slurmd: a host with a problem of high severity gets no job.
#
#   slurm.conf:  Prolog=/etc/slurm/envtune-prolog.sh
#                PrologFlags=Alloc
#
# Slurm drains a host whose prolog fails, and puts the job back into the queue. A host is drained for what was found
# (exit status 1) only, not for what could not be checked (3), nor when envtune is missing or does not end in time.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

report=$(timeout 120 envtune check --fail-on high --color never --lang en 2>&1)
status=$?
case $status in 0 | 3) exit 0 ;; esac

# The whole report goes into the log of the host, the ids of the checks into the reason of the drain.
printf '%s\n' "$report" | logger -t envtune 2>/dev/null
[ "$status" -eq 1 ] || exit 0
found=$(printf '%s\n' "$report" | sed -En 's/^(critical|high) +([A-Z]+[0-9]+).*/\2/p' | paste -sd, -)
scontrol update nodename="$SLURMD_NODENAME" state=drain reason="envtune: $found"
exit 1
