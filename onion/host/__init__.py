"""The machine under Paddle: operating system, processor, threads, process limits."""
