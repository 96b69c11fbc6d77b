"""python -m hvd_elastic: the program hvd-elastic."""

from . import _programs

if __name__ == "__main__":
    _programs.elastic()
