"""Services of the dashboard: reading, acting, watching and navigation."""
