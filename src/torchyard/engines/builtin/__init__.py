"""The engines that come with torchyard: one module each, found by listing this folder."""
