"""Local language models whose prompt caches survive everything.

    from afterglow import load, generate

    model, tokenizer = load("model.gguf")
    print(generate(model, tokenizer, "Once upon a time"))

The names and meanings are those of mlx_lm.
"""

from . import _check  # noqa: F401  before all that needs the extension
from . import _process  # noqa: F401
from ._built_with import VERSION as __version__
from ._error import Error
from ._native import CacheHistory, LogitsStream, Model, ModelInfo
from .generate import (
    StepOutput,
    generate,
    generate_step,
    logits_stream,
    stream_generate,
)
from .sample_utils import make_logits_processors, make_sampler
from .tokenizer import Tokenizer
from .utils import load, load_cache, save_cache

__all__ = [
    "CacheHistory",
    "Error",
    "LogitsStream",
    "Model",
    "ModelInfo",
    "StepOutput",
    "Tokenizer",
    "__version__",
    "generate",
    "generate_step",
    "load",
    "load_cache",
    "logits_stream",
    "make_logits_processors",
    "make_sampler",
    "save_cache",
    "stream_generate",
]
