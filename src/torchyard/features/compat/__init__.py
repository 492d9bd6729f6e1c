"""With which torch releases an extension loads."""
