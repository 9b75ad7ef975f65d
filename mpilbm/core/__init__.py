"""What every layer uses: errors, registry, units, quantities, formulas, files, processes."""
