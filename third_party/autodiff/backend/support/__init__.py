"""What the other rooms need and nobody else knows of: types of numbers, places in source, files."""
