#!/bin/sh
# srun.sh COMMAND...: the task of a Slurm job, in a batch script: srun -K, so that a rank that does not start ends the others.
#
#   sbatch --nodes 2 --ntasks-per-node 8 --wrap './srun.sh python train.py'
set -eu
exec srun -K envtune run --fail-on high -- "$@"
