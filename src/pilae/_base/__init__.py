"""What knows nothing of models: files that appear whole and what they may hold, progress, numbers, warnings, extras."""
