#!/bin/bash
# The permeability tensor of a rock: one case with the force along x, y and z, one GPU each.
# From this repository's folder:
#     CASE=cases/rock.toml FORCE=1e-5 sbatch jobs/permeability.sh
# If submitted again, each task continues from its last checkpoint. When all three have ended:
#     tools/permeability_tensor rock_x.out rock_y.out rock_z.out
#SBATCH --job-name=mpilbm
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=04:00:00
#SBATCH --array=0-2
# Ten minutes before the time limit the ranks receive a signal, write a checkpoint and stop (exit code 4).
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append

CASE=${CASE:-cases/rock.toml}
FORCE=${FORCE:-1e-5}                        # force per volume, in lattice units
OUTPUT=${OUTPUT:-$(basename "$CASE" .toml)} # folders: OUTPUT_x.out, OUTPUT_y.out, OUTPUT_z.out
VENV=${VENV:-$PWD/.venv} # has mpilbm[cuda12] or [cuda13], and mpi4py for the MPI loaded below
MODULES=${MODULES:-}     # for example "gcc openmpi cuda"

set -uo pipefail
if [[ -n $MODULES ]]; then
    # shellcheck disable=SC2086 # one word per module
    module load $MODULES
fi
export PATH=$VENV/bin:$PATH OMP_NUM_THREADS=1

axes=(x y z)
forces=("[$FORCE,0,0]" "[0,$FORCE,0]" "[0,0,$FORCE]")
number=$SLURM_ARRAY_TASK_ID

srun mpilbm run "$CASE" --set "force.value=${forces[number]}" \
    --output "${OUTPUT}_${axes[number]}.out" --restart auto
