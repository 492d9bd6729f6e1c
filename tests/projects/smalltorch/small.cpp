int part();

int small() { return 6 * part(); }
