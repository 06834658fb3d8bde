"""What `fedsim describe` tells of a scenario, subject by subject, before anything is trained."""
