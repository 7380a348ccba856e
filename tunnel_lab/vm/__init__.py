"""The lab's hosts as QEMU machines, each in a network namespace of its own that goes with it."""
