__version__ = "2.13.9+cpu"
cuda = None
hip = None
