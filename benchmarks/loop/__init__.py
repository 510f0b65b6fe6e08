"""What a loop costs a batch beside the same loop written by hand: onion's, and its peers'."""
