int made();
