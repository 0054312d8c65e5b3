"""Which network: the candidates, and the choice among them by leave-one-out."""
