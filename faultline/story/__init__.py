"""The story of chapters 1 and 2 as scenes that run: `faultline story` tells them on real nodes."""
