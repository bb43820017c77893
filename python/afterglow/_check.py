"""The extension works with the mlx wheel that it was built with, and no other:
MLX promises no stable binary interface. Importing this module checks it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ._built_with import MLX


def _check() -> None:
    if MLX is None:
        return
    wanted = f"afterglow was built with mlx {MLX} and needs exactly that"
    try:
        found = version("mlx")
    except PackageNotFoundError:
        raise ImportError(
            f"{wanted}, but mlx is not installed; type: "
            f"pip install 'mlx[cpu]=={MLX}' (without [cpu] on a Mac)"
        ) from None
    if found != MLX:
        raise ImportError(
            f"{wanted}, but mlx {found} is installed; type: "
            f"pip install 'mlx=={MLX}', or build afterglow anew"
        )
    try:
        from . import _native  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"afterglow's extension could not be loaded: {error}. It looks for "
            "libmlx in the folder mlx/lib beside its own, so both packages "
            "must be installed in one place"
        ) from error


_check()
