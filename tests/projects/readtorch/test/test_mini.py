import mini
