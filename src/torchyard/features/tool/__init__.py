"""What steps of jobs run of torchyard itself."""
