"""Why a build failed, from its log."""
