"""What the parts throw at pilae, where it takes more than a few lines to make."""
