"""What happens to the cost when one thing is twice as large."""
