"""Pictures and pages for people who look before they read."""
