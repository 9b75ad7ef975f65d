"""Speed, start-up, scaling and precision: `mpilbm bench` and `mpilbm precision`."""
