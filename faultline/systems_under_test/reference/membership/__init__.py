"""Members of a cluster without elections, whose oldest one coordinates, for the systems that are led so."""
