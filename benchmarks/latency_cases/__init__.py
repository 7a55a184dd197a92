"""The parts of `latency.py`: stages of compiling, programs, and the process that runs one."""
