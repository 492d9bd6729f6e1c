"""Against which torch releases an extension loads, by the symbols of both."""
