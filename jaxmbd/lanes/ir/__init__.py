"""The graph of scalars: its nodes, how it is built, what of it is needed."""
