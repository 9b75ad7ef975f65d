#!/bin/bash
# Scaling: measures a box on increasing numbers of GPUs of one allocation, and writes a report.
# From this repository's folder:
#     SCALING=weak SIZE=512 RANKS="1 2 4 8" sbatch --nodes=2 jobs/series.sh
#     SCALING=strong SIZE=384 sbatch --nodes=2 jobs/series.sh
#SBATCH --job-name=mpilbm
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
# Every rank sees all GPUs of its node and takes the one of its local rank. With one visible GPU per rank
# many MPI libraries cannot copy from GPU to GPU. Remove the line if jobs share nodes and see each other's GPUs.
#SBATCH --gpu-bind=none

SCALING=${SCALING:-weak} # or strong
SIZE=${SIZE:-512}        # cells of each rank, or in all, for example 512 or 254x127x512
RANKS=${RANKS:-1 2 4 8}
OPTIONS=${OPTIONS:---setting periodic,cavity} # of mpilbm bench
OUTPUT=${OUTPUT:-scaling_$SCALING}
PER_NODE=${SLURM_NTASKS_PER_NODE:-4}
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

mkdir -p "$OUTPUT"
failed=0
for ranks in $RANKS; do # srun ends the other ranks 30 s after one has ended
    nodes=$(((ranks + PER_NODE - 1) / PER_NODE))
    each=$((ranks < PER_NODE ? ranks : PER_NODE))
    # shellcheck disable=SC2086 # one word per option
    srun --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node="$each" \
        --kill-on-bad-exit=0 --wait=30 \
        mpilbm bench "--$SCALING" "$SIZE" $OPTIONS \
        --json "$OUTPUT/${SCALING}_${SIZE}_${ranks}ranks_$SLURM_JOB_ID.json" || failed=$?
done
mpilbm report "$OUTPUT" || failed=$?
exit "$failed"
