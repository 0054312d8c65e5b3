"""What the Makefile runs on the package itself: bounds, licences, vulnerabilities, wheel and sdist."""
