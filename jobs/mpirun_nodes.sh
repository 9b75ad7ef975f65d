#!/bin/bash
# As many_nodes.sh, for an MPI whose ranks must be started by its own mpirun. From this repository's folder:
#     CASE=cases/cavity3d_re1000.toml sbatch --nodes=8 jobs/mpirun_nodes.sh
# If submitted again, it continues from the last checkpoint; the case requires an [[output]] checkpoint.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Ten minutes before the time limit this script receives a signal and sends it to mpirun, which passes it to the
# ranks; they write a checkpoint and stop (exit code 4).
#SBATCH --signal=B:USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity3d_re1000.toml}
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml).out}
MPIRUN=${MPIRUN:-mpirun} # and its options
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

# shellcheck disable=SC2086 # one word per option
$MPIRUN -n "$SLURM_NTASKS" mpilbm run "$CASE" --output "$OUTPUT" --restart auto &
ranks=$! signalled=0
trap 'signalled=1; kill -USR1 "$ranks"' USR1
wait "$ranks"
code=$?
if ((signalled)); then # the signal ended this wait, not the ranks
    wait "$ranks"
    code=$?
fi
exit "$code"
