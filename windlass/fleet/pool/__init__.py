"""Worker processes of our own: started, kept warm, ended."""
