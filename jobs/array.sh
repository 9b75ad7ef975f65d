#!/bin/bash
# One case for many values of a key, one GPU each. From this repository's folder:
#     CASE=cases/cavity2d_re1000.toml KEY=fluid.reynolds VALUES="100 400 1000 3200" \
#         sbatch --array=0-3 jobs/array.sh
# If submitted again, each task continues from its last checkpoint.
#SBATCH --job-name=mpilbm
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=04:00:00
# One task for each of VALUES.
#SBATCH --array=0-3
# Ten minutes before the time limit the ranks receive a signal, write a checkpoint and stop (exit code 4).
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/cavity2d_re1000.toml}
KEY=${KEY:-fluid.reynolds}
VALUES=${VALUES:-100 400 1000 3200} # as in --set KEY=VALUE, without spaces
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml)} # folders: OUTPUT_0.out, OUTPUT_1.out, ...
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

read -ra values <<<"$VALUES"
number=$SLURM_ARRAY_TASK_ID
value=${values[number]:?VALUES has too few entries for this array}

srun mpilbm run "$CASE" --set "$KEY=$value" --output "${OUTPUT}_$number.out" --restart auto
