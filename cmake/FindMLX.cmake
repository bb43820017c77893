# Finds MLX in the PyPI wheel that lies in AFTERGLOW_VENV, or whose folder mlx
# is AFTERGLOW_MLX_ROOT: makes the imported target MLX::mlx from the wheel's
# include/ and lib/. The wheel's own package configuration is not used, since it
# asks for CUDA's development files.
#
# Sets MLX_FOUND, MLX_VERSION, MLX_ROOT (the wheel's folder mlx, whose parent
# also holds the folder of its BLAS, found by libmlx through a relative path),
# MLX_INCLUDE_DIR and MLX_LIBRARY.

file(GLOB _mlx_roots "${AFTERGLOW_VENV}/lib/python3*/site-packages/mlx"
     "${AFTERGLOW_VENV}/lib64/python3*/site-packages/mlx")
if(AFTERGLOW_MLX_ROOT)
  set(_mlx_roots ${AFTERGLOW_MLX_ROOT})
endif()

# Searched anew each time, so that a wheel installed or replaced after the
# first configure counts.
unset(MLX_INCLUDE_DIR CACHE)
unset(MLX_LIBRARY CACHE)
find_path(
  MLX_INCLUDE_DIR mlx/version.h
  PATHS ${_mlx_roots}
  PATH_SUFFIXES include
  NO_DEFAULT_PATH)
find_library(
  MLX_LIBRARY mlx
  PATHS ${_mlx_roots}
  PATH_SUFFIXES lib
  NO_DEFAULT_PATH)
mark_as_advanced(MLX_INCLUDE_DIR MLX_LIBRARY)

if(MLX_INCLUDE_DIR)
  cmake_path(GET MLX_INCLUDE_DIR PARENT_PATH MLX_ROOT)
  file(STRINGS ${MLX_INCLUDE_DIR}/mlx/version.h _mlx_lines
       REGEX "#define MLX_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" _mlx_numbers "${_mlx_lines}")
  string(REPLACE ";" "." MLX_VERSION "${_mlx_numbers}")
endif()

if(APPLE)
  set(_mlx_package "mlx==${MLX_FIND_VERSION}")
else()
  set(_mlx_package "mlx[cpu]==${MLX_FIND_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  MLX
  REQUIRED_VARS MLX_LIBRARY MLX_INCLUDE_DIR
  VERSION_VAR MLX_VERSION
  REASON_FAILURE_MESSAGE
    "
No usable mlx wheel in AFTERGLOW_VENV=${AFTERGLOW_VENV}. Type
  python3 -m venv ${AFTERGLOW_VENV}
  ${AFTERGLOW_VENV}/bin/pip install '${_mlx_package}'
or build without it: cmake -DAFTERGLOW_MLX=OFF")

if(MLX_FOUND AND NOT TARGET MLX::mlx)
  add_library(MLX::mlx SHARED IMPORTED)
  set_target_properties(
    MLX::mlx
    PROPERTIES IMPORTED_LOCATION ${MLX_LIBRARY}
               INTERFACE_INCLUDE_DIRECTORIES ${MLX_INCLUDE_DIR}
               INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
