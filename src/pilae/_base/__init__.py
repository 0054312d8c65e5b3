"""What knows nothing of arrays: changes that are whole, what a file may hold, progress, plain numbers, extras."""
