"""What a project and its user have on disk: the root, settings, who serves and who shares it."""
