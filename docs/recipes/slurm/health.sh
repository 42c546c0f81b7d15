#!/bin/sh
# HealthCheckProgram of slurmd: drains an idle host with a problem of high severity, and resumes it when it is gone.
#
#   slurm.conf:  HealthCheckProgram=/etc/slurm/envtune-health.sh
#                HealthCheckInterval=600
#                HealthCheckNodeState=IDLE
#
# A host that somebody else drained keeps its state: only a drain whose reason begins with "envtune:" is undone.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

node=${SLURMD_NODENAME:-$(hostname -s)}
reason=$(scontrol show node "$node" | sed -n 's/^ *Reason=\(.*\) \[.*/\1/p')
report=$(timeout 50 envtune check --fail-on high --color never --lang en 2>&1)
case $? in
1)
  found=$(printf '%s\n' "$report" | sed -En 's/^(critical|high) +([A-Z]+[0-9]+).*/\2/p' | paste -sd, -)
  case $reason in
  "" | envtune:*) scontrol update nodename="$node" state=drain reason="envtune: $found" ;;
  esac
  ;;
0 | 3)
  case $reason in
  envtune:*) scontrol update nodename="$node" state=resume ;;
  esac
  ;;
esac
exit 0
