#!/bin/bash
# Scaling: the same box measured on more and more GPUs of one allocation, and a report.
# From this repository's folder:
#     SCALING=weak SIZE=512 RANKS="1 2 4 8" sbatch --nodes=2 jobs/series.sh
#     SCALING=strong SIZE=384 sbatch --nodes=2 jobs/series.sh
#SBATCH --job-name=mpilbm
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
# Every rank sees every GPU of its node and takes the one of its local rank: between ranks that see
# one GPU each, MPI could not copy straight from GPU to GPU.
#SBATCH --gpu-bind=none

SCALING=${SCALING:-weak} # or strong
SIZE=${SIZE:-512}        # cells of each rank, or in all, for example 512 or 254x127x512
RANKS=${RANKS:-1 2 4 8}
OPTIONS=${OPTIONS:---setting periodic,cavity} # of mpilbm bench
OUTPUT=${OUTPUT:-scaling_$SCALING}
PER_NODE=${SLURM_NTASKS_PER_NODE:-4}
VENV=${VENV:-$PWD/.venv} # with mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word is one module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

mkdir -p "$OUTPUT"
failed=0
for ranks in $RANKS; do
    nodes=$(((ranks + PER_NODE - 1) / PER_NODE))
    each=$((ranks < PER_NODE ? ranks : PER_NODE))
    # shellcheck disable=SC2086 # one word is one option
    srun --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node="$each" \
        mpilbm bench "--$SCALING" "$SIZE" $OPTIONS \
        --json "$OUTPUT/${SCALING}_${SIZE}_${ranks}ranks_$SLURM_JOB_ID.json" || failed=$?
done
mpilbm report "$OUTPUT" || failed=$?
exit "$failed"
