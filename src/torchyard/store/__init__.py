"""Content-addressed results, in a directory or in S3."""
