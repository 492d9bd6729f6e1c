"""Files of CI providers, generated from a plan: which jobs they run, and on which machines."""
