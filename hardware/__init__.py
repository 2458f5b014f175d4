"""Power rails and the arm (near-empty until the hardware part lands)."""
