"""Parts of `scale.py`: long chains and a robot with closed loops, against Pinocchio."""
