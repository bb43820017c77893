# afterglow_embed(<target> <symbol> <folder> <names...>): builds files of the
# folder into the target as `symbol` of server/embedded_file.h.
function(afterglow_embed target symbol folder)
  set(names ${ARGN})
  list(SORT names)
  set(paths ${names})
  list(TRANSFORM paths PREPEND ${folder}/)
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${folder} -D "NAMES=${names}" -D
            SYMBOL=${symbol} -D OUTPUT=${output} -P ${script}
    DEPENDS ${paths} ${script}
    COMMENT "Embedding ${folder}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# afterglow_embed_folder(<target> <symbol> <folder>): all files below it.
function(afterglow_embed_folder target symbol folder)
  file(GLOB_RECURSE names CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
  afterglow_embed(${target} ${symbol} ${folder} ${names})
endfunction()

# afterglow_embed_yaml(<target> <symbol> <file.yaml>): the file as JSON, under
# its name with .json. Needs a Python that has PyYAML, as set-up's has.
function(afterglow_embed_yaml target symbol yaml)
  find_program(AFTERGLOW_PYTHON_PROGRAM python3 PATHS ${AFTERGLOW_VENV}/bin
               NO_DEFAULT_PATH)
  find_program(AFTERGLOW_PYTHON_PROGRAM python3 REQUIRED)
  execute_process(COMMAND ${AFTERGLOW_PYTHON_PROGRAM} -c "import yaml"
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(python ${AFTERGLOW_PYTHON_PROGRAM})
    # Else the next try would not look for another one.
    unset(AFTERGLOW_PYTHON_PROGRAM CACHE)
    message(FATAL_ERROR "${python} has no PyYAML, which turns "
                        "${yaml} into JSON; type: scripts/setup.sh build")
  endif()
  cmake_path(GET yaml STEM name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${symbol})
  set(script ${CMAKE_SOURCE_DIR}/cmake/yaml_to_json.py)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${folder}/${name}.json
    COMMAND ${AFTERGLOW_PYTHON_PROGRAM} ${script} ${yaml} ${folder}/${name}.json
    DEPENDS ${yaml} ${script}
    VERBATIM)
  afterglow_embed(${target} ${symbol} ${folder} ${name}.json)
endfunction()
