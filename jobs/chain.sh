#!/bin/bash
# A run that takes longer than the time limit. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch --nodes=2 jobs/chain.sh
# When the run stops before the time limit with a checkpoint (exit code 4), the job requeues itself and
# continues from there, until all steps are done. Any other exit code ends the chain, and so do LINKS
# restarts, or a run that stops without a new checkpoint. The case requires an [[output]] with name = "checkpoint".
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
LINKS=${LINKS:-50}
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

# The newest by time, not by step: if the checkpoint of a later step is damaged, the run continues from
# an earlier one.
newest_checkpoint() {
    find "$OUTPUT" -maxdepth 1 -name 'checkpoint_*.h5' -printf '%T@ %p\n' 2>/dev/null |
        sort -n | tail -n 1 | cut -d ' ' -f 2-
}
before=$(newest_checkpoint)

# srun ends the other ranks 30 s after one has ended; otherwise they would wait for a killed rank until the time limit.
# (--kill-on-bad-exit=1 would end them at once, and hide the exit code 4 of a run that stopped in time.)
srun --kill-on-bad-exit=0 --wait=30 mpilbm run "$CASE" --output "$OUTPUT" --restart auto
code=$?
((code == 4)) || exit "$code"
if [[ $(newest_checkpoint) == "$before" ]]; then
    echo "jobs/chain.sh: the run made no progress (newest checkpoint: ${before:-none}); not requeued" >&2
elif ((${SLURM_RESTART_COUNT:-0} >= LINKS)); then
    echo "jobs/chain.sh: not done after $LINKS restarts; submit it again to continue" >&2
else
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
