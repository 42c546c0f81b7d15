"""What is about the program as a whole, whatever the verb: its words in help, completion, version, progress."""
