"""What several processes cost: onion's, beside ``paddle.DataParallel`` and fleet, on one machine."""
