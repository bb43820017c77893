# The fuzz targets of what a client sends, with what they need and no more.
# Each starts from testdata/<seeds> and keeps what it finds in the build folder;
# ctest runs it for AFTERGLOW_FUZZ_SECONDS.

add_library(
  ag_server_front STATIC
  access.cpp
  api_error.cpp
  api_keys.cpp
  chat_messages.cpp
  exchange.cpp
  field_reader.cpp
  http_wire.cpp
  json_body.cpp
  log_value.cpp
  openai_schema.cpp
  prompt_fields.cpp
  request_reader.cpp
  tool_fields.cpp
  web_origin.cpp)
target_include_directories(ag_server_front PUBLIC ${CMAKE_SOURCE_DIR}/src
                                                  ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(
  ag_server_front PUBLIC ag_base nlohmann_json::nlohmann_json Boost::headers
                         OpenSSL::Crypto)

function(server_fuzz name seeds_folder)
  add_executable(${name}_fuzz ${name}_fuzz.cpp)
  target_link_libraries(${name}_fuzz PRIVATE ag_server_front -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name}_fuzz)
  set(corpus ${CMAKE_CURRENT_BINARY_DIR}/corpus/${name})
  file(MAKE_DIRECTORY ${corpus})
  add_test(
    NAME ${name}_fuzz
    COMMAND
      ${name}_fuzz -max_total_time=${AFTERGLOW_FUZZ_SECONDS} -max_len=4096
      -timeout=10 -print_final_stats=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}- ${corpus}
      ${CMAKE_CURRENT_SOURCE_DIR}/testdata/${seeds_folder})
endfunction()

server_fuzz(http_front requests)
server_fuzz(request_body bodies)
