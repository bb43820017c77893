# Build rules shared by all directories under src/.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE
      RelWithDebInfo
      CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the checkout: another clone finds what this one compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
               CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

# The numeric contract forbids contraction: every fma is written out.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers
                    -ffp-contract=off)

if(AFTERGLOW_SANITIZE)
  add_compile_options(-fsanitize=${AFTERGLOW_SANITIZE}
                      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${AFTERGLOW_SANITIZE})
endif()

# Everything that ctest runs; `all` builds it too.
add_custom_target(unit_tests)

# afterglow_test(<target> <label>): registers a GoogleTest program. Suites named
# *RealModel* need the default model and take long: their label is real_model,
# by which the sanitizers' runs leave them out.
function(afterglow_test target label)
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main)
  target_compile_definitions(
    ${target} PRIVATE AFTERGLOW_DEFAULT_MODEL="${AFTERGLOW_DEFAULT_MODEL}"
                      AFTERGLOW_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(unit_tests ${target})
  gtest_discover_tests(
    ${target}
    TEST_FILTER -*RealModel*
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 600 LABELS ${label})
  gtest_discover_tests(
    ${target}
    TEST_FILTER *RealModel*
    TEST_LIST ${target}_real_model
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 600 LABELS real_model)
endfunction()

# afterglow_library(<dir> LINK <targets...>): the static library ag_<dir> from
# all sources below src/<dir>, and the test program <dir>_test from all
# *_test.cpp beside them.
function(afterglow_library name)
  cmake_parse_arguments(ARG "" "" "LINK;TEST_LINK;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS *.cpp)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
    list(FILTER tests EXCLUDE REGEX ${pattern})
  endforeach()

  if(sources)
    add_library(ag_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(ag_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(ag_${name} ${scope} ${CMAKE_SOURCE_DIR}/src
                             ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(ag_${name} ${scope} ${ARG_LINK})

  if(AFTERGLOW_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ag_${name} ${ARG_TEST_LINK})
    afterglow_test(${name}_test ${name})
  endif()
endfunction()
