"""The node types that a workflow finds where it stands."""

from __future__ import annotations

from pathlib import Path

from pflow.app.options import Options
from pflow.mcp.offered import SyncedTypes
from pflow.model.workflow import Workflow
from pflow.nodes.purity import Standings
from pflow.nodes.registry import Registry, local_folders
from pflow.storage.files import home as default_home


def registry_for(workflow: Workflow, options: Options) -> Registry:
    """The node types that a workflow can use."""
    cwd = options.workspace or Path.cwd()
    beside = Path(workflow.file).absolute().parent if workflow.file else cwd
    home = options.home or default_home()
    folders = local_folders(beside, cwd, home=home)
    return Registry(options.types, folders, standings=Standings(home), offers=(SyncedTypes(home),))
