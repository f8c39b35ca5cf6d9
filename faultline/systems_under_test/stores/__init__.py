"""Real stores as systems under test: one folder for each, all on `store.RealStore`; they run on hosts only."""
