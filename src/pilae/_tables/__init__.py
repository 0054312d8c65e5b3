"""Files of mixed columns: read cell by cell, their columns turned into numbers."""
