"""What runs in a master: Buildbot's services, steps and tables, connected with what decides."""
