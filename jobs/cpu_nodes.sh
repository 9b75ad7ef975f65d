#!/bin/bash
# One case on the CPUs of nodes without GPUs: few ranks per node, each with threads. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch --nodes=4 jobs/cpu_nodes.sh
# If submitted again, it continues from the last checkpoint; the case requires an [[output]] checkpoint.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=1
# 8 x 16 = 128 cores per node: one rank for each part of a node with its own memory (NUMA domain, see lscpu).
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=16
# A CPU is a core, not one of its hardware threads.
#SBATCH --hint=nomultithread
#SBATCH --time=04:00:00
# Ten minutes before the time limit the ranks receive a signal, write a checkpoint and stop (exit code 4).
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity3d_re1000.toml}
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml).out}
VENV=${VENV:-$PWD/.venv} # has mpilbm[cpu], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi"
THREADS=${THREADS:-${SLURM_CPUS_PER_TASK:-1}}

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

# srun does not take --cpus-per-task from the job since SLURM 22.05. It binds each rank to its cores; --cpu-bind
# would cancel the --hint above. --wait: see one_node.sh.
srun --cpus-per-task="$THREADS" --kill-on-bad-exit=0 --wait=30 \
    mpilbm run "$CASE" --set "backend.name='cpu'" --set "backend.threads=$THREADS" \
    --output "$OUTPUT" --restart auto
