# What AFTERGLOW_PYTHON needs before all else: the interpreter, and the mlx
# wheel that this interpreter imports, which may lie in pip's own environment.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

if(AFTERGLOW_MLX)
  execute_process(
    COMMAND
      ${Python_EXECUTABLE} -c
      "import importlib.util; print(next(iter(importlib.util.find_spec('mlx').submodule_search_locations)))"
    OUTPUT_VARIABLE AFTERGLOW_MLX_ROOT
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

set(AFTERGLOW_CARGO_TARGET_DIR
    ${CMAKE_SOURCE_DIR}/build/cargo
    CACHE PATH "Where cargo keeps what it builds; may be shared by builds")
