"""Audits of any index, and the pages and the log of a channel."""
