"""python -m cgc: the console script `cgc`, as for torchrun -m cgc."""
from ._program import main

main()
