#!/bin/bash
# One case on one GPU. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch jobs/one_gpu.sh
# If submitted again, it continues from the last checkpoint; the case requires an [[output]] checkpoint.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=04:00:00
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

srun mpilbm run "$CASE" --output "$OUTPUT" --restart auto
