"""What the dashboard does behind its screens: reading, acting, watching, navigating."""
