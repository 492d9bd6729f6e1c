"""Which pending job starts next, and on which worker."""
