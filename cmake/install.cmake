# An installed folder stands alone: the program, the library with its headers
# and package files, MLX in its wheel's layout (libmlx finds its BLAS by a path
# relative to itself), the default model.
include(CMakePackageConfigHelpers)

if(AFTERGLOW_MLX)
  find_package(MLX REQUIRED)
  cmake_path(GET MLX_ROOT PARENT_PATH mlx_site)

  set_target_properties(afterglow PROPERTIES INSTALL_RPATH
                                             $ORIGIN/../lib/afterglow/mlx/lib)
  set_target_properties(libafterglow PROPERTIES INSTALL_RPATH
                                                $ORIGIN/afterglow/mlx/lib)
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

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/afterglow DESTINATION include)
install(TARGETS libafterglow EXPORT afterglow LIBRARY DESTINATION lib)
install(
  EXPORT afterglow
  NAMESPACE afterglow::
  FILE afterglow-config.cmake
  DESTINATION lib/cmake/afterglow)
write_basic_package_version_file(
  afterglow-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/afterglow-config-version.cmake
        DESTINATION lib/cmake/afterglow)
configure_file(${CMAKE_CURRENT_LIST_DIR}/afterglow.pc.in afterglow.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/afterglow.pc
        DESTINATION lib/pkgconfig)
