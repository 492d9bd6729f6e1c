"""Work-arounds for defects of Buildbot; each names the defect, so that it can be removed."""
