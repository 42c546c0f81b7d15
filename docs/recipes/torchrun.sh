#!/bin/sh
# torchrun.sh COMMAND...: starts a command on NPUS local ranks; torchrun starts envtune instead of python.
#
#   ./torchrun.sh python train.py
#   NNODES=2 NODE_RANK=0 MASTER_ADDR=192.0.2.10 ./torchrun.sh python train.py
set -eu
exec torchrun --nproc_per_node "${NPUS:-8}" --nnodes "${NNODES:-1}" --node_rank "${NODE_RANK:-0}" \
  --master_addr "${MASTER_ADDR:-127.0.0.1}" --master_port "${MASTER_PORT:-29500}" \
  --no_python envtune run --fail-on high -- "$@"
