"""The providers: one module each, with its table in `data/ci/`."""
