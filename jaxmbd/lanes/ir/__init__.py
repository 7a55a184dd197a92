"""The scalar graph: nodes, construction with folding, liveness, verification."""
