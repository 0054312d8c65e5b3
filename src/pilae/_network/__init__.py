"""What a network is: its layers, its neurons, its output layer, and the rules for its shape."""
