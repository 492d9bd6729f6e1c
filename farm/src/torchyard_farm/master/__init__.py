"""The master: Buildbot's services, schedulers and steps, driven by `scheduling`."""
