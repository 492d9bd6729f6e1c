"""All that Buildbot calls, or that calls Buildbot: thin, as nothing is decided here."""
