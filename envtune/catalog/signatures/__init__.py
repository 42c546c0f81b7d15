"""What a signature of the FAQ is made of: tokens in any order, and the texts that a match of it must contain."""
