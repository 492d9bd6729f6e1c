"""From a plan's file to Buildbot's queue, and out of the database again."""
