#!/bin/bash
# One case on all GPUs of many nodes, one rank per GPU. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch --nodes=8 jobs/many_nodes.sh
# Submitted again, it goes on from the last checkpoint; the case needs an [[output]] that writes them.
# Where srun does not start the MPI loaded below, take mpirun_nodes.sh.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Every rank sees every GPU of its node and takes the one of its local rank: between ranks that see
# one GPU each, MPI could not copy straight from GPU to GPU.
#SBATCH --gpu-bind=none
# Ten minutes before the end the ranks are told to write a checkpoint and stop (exit code 4).
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity3d_re1000.toml}
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml).out}
VENV=${VENV:-$PWD/.venv} # with mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word is one module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

srun mpilbm run "$CASE" --output "$OUTPUT" --restart auto
