"""Work-arounds for defects of Buildbot; each names its defect, so that it can be removed."""
