"""Plans of fixes and what came of them, as text: the short form, all details, what is not fixed, the result."""
