"""What travels: which JSON is safe to store and send again, pages of lists, the messages of the WebSocket protocol."""
