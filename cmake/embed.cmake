# afterglow_embed(<target> <symbol> <folder>): builds the folder's files into
# the target as `symbol` of server/embedded_file.h.
function(afterglow_embed target symbol folder)
  file(GLOB_RECURSE names CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
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
