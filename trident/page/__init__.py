"""What people look at: the page of a server, and what notebooks show."""
