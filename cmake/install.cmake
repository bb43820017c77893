# An installed folder stands alone: the program, MLX in its wheel's layout
# (libmlx finds its BLAS by a path relative to itself), the default model.

if(AFTERGLOW_MLX)
  find_package(MLX REQUIRED)
  cmake_path(GET MLX_ROOT PARENT_PATH mlx_site)

  set_target_properties(afterglow PROPERTIES INSTALL_RPATH
                                             $ORIGIN/../lib/afterglow/mlx/lib)
  install(FILES ${MLX_LIBRARY} DESTINATION lib/afterglow/mlx/lib)
  foreach(libraries mlx_cpu.libs mlx.libs)
    if(IS_DIRECTORY ${mlx_site}/${libraries})
      install(DIRECTORY ${mlx_site}/${libraries} DESTINATION lib/afterglow)
    endif()
  endforeach()
endif()

install(TARGETS afterglow RUNTIME DESTINATION bin)
install(FILES ${AFTERGLOW_DEFAULT_MODEL} DESTINATION share/afterglow/models)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md
        DESTINATION share/doc/afterglow)
