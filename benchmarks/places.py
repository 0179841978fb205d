"""Where the repository is, and the models of others that lie beside it, or beside the folder of a worktree."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = next((path for up in ROOT.parents if (path := up / "shared" / "models").exists()), ROOT / "no models")
