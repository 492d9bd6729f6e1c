unsigned long checksum(const char *text);
