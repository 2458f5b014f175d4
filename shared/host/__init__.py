"""The only place that touches the operating system."""
