"""What edge, hub and hardware hold in common; imports none of them."""
