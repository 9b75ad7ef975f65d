#!/bin/bash
# One case on all GPUs of one node, one rank per GPU. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch jobs/one_node.sh
# If submitted again, it continues from the last checkpoint; the case requires an [[output]] checkpoint.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Every rank sees all GPUs of its node and takes the one of its local rank. With one visible GPU per rank
# many MPI libraries cannot copy from GPU to GPU. Remove the line if jobs share nodes and see each other's GPUs.
#SBATCH --gpu-bind=none
# Ten minutes before the time limit the ranks receive a signal, write a checkpoint and stop (exit code 4).
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity3d_re1000.toml}
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml).out}
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

# srun ends the other ranks 30 s after one has ended; otherwise they would wait for a killed rank until the time limit.
# (--kill-on-bad-exit=1 would end them at once, and hide the exit code 4 of a run that stopped in time.)
srun --kill-on-bad-exit=0 --wait=30 mpilbm run "$CASE" --output "$OUTPUT" --restart auto
