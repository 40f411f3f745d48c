"""What is secret in a text: by its form, by the name it stands after, or because it is known."""
