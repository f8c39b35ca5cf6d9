"""`python -m faultline.cli` is the `faultline` command."""

from faultline.cli.main import main

if __name__ == "__main__":
    main()
