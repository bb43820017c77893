# GoogleTest as GTest::gtest and GTest::gtest_main: the installed library, or,
# for another processor than this one, built from Debian's package googletest.

if(CMAKE_CROSSCOMPILING)
  set(AFTERGLOW_GTEST_SOURCE
      /usr/src/googletest
      CACHE PATH "GoogleTest's sources, for a cross build")
  set(BUILD_GMOCK OFF)
  set(INSTALL_GTEST OFF)
  add_subdirectory(${AFTERGLOW_GTEST_SOURCE} googletest EXCLUDE_FROM_ALL SYSTEM)
else()
  find_package(GTest REQUIRED)
endif()
