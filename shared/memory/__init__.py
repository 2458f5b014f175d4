"""The paper's maths: pure functions, no files, sockets, clocks or randomness."""
