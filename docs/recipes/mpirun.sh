#!/bin/sh
# mpirun.sh COMMAND...: starts a command on RANKS ranks. The first rank of every host checks it before the command starts;
# the first rank that fails is diagnosed.
#
#   RANKS=16 HOSTS=node1:8,node2:8 ./mpirun.sh python train.py
set -eu
exec mpirun -n "${RANKS:-8}" ${HOSTS:+--host "$HOSTS"} envtune run --fail-on high -- "$@"
