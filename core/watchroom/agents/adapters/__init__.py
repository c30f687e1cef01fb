"""The toolbox for other frameworks. Each module imports only its own framework."""
