#!/bin/bash
source /usr/local/Ascend/ascend-toolkit/set_env.sh
export TASK_QUEUE_ENABLE=0
export ASCEND_GLOBAL_LOG_LEVEL=1  # envtune: ignore ENV003 -- plog of rank 3 is needed
export HCCL_CONNECT_TIMEOUT=$TIMEOUT
DUMP_GE_GRAPH=2 python export_graph.py
srun --export=ALL,ASCEND_SLOG_PRINT_TO_STDOUT=1 python train.py
