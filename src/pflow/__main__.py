"""``python -m pflow``."""

import sys

from pflow.cli.main import main

sys.exit(main())
