"""`python -m sleuth`, the same as the command `sleuth`."""

from sleuth.studio.cli import main

if __name__ == "__main__":
    main()
