"""What all outputs of a run share: when they are written, sums, samples, restarts, the summary."""
