"""One turn being made: what is recorded for it, and by whom. Stores come in by protocol only."""
