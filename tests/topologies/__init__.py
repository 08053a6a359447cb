"""Every test in here runs on both engines and expects the same of them."""
