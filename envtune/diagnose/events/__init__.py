"""What is an event in a log, and what only speaks of one: forms of lines, pages of quotations, runs that went on."""
