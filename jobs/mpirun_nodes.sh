#!/bin/bash
# As many_nodes.sh, for an MPI that its own mpirun starts. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch --nodes=8 jobs/mpirun_nodes.sh
# Submitted again, it goes on from the last checkpoint; the case needs an [[output]] that writes them.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Ten minutes before the end this script is told, and tells mpirun, whose ranks write a checkpoint and
# stop (exit code 4).
#SBATCH --signal=B:USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity3d_re1000.toml}
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml).out}
MPIRUN=${MPIRUN:-mpirun} # with its options, one word each
VENV=${VENV:-$PWD/.venv} # with mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word is one module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

# shellcheck disable=SC2086 # one word is one option
$MPIRUN -n "$SLURM_NTASKS" mpilbm run "$CASE" --output "$OUTPUT" --restart auto &
ranks=$! told=0
trap 'told=1; kill -USR1 "$ranks"' USR1
wait "$ranks"
code=$?
if ((told)); then # the signal ended the wait, not the ranks
    wait "$ranks"
    code=$?
fi
exit "$code"
