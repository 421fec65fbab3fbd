"""Authentication, rate limits, body limits and request logs."""
