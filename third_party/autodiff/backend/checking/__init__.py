"""What is true of a launch: a plan's expressions, checks and spaces, evaluated."""
