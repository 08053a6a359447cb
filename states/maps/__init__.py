"""Map states: what is updated and read, made of tables and kinds."""
