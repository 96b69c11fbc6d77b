# How everything is compiled, and the two functions the folders use: hvd_library, hvd_program.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_STANDARD 17) # for the one C++ file, collectives/link/gloo_link.cc
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# Assertions guard the users' training state: they stay on in every build type.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")

add_library(hvd_compile INTERFACE)
target_include_directories(hvd_compile INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(hvd_compile INTERFACE _GNU_SOURCE
  HVD_VERSION_TEXT="${PROJECT_VERSION}")
target_compile_options(hvd_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2
  -Wimplicit-fallthrough -Wvla -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings -fno-common
  -fstack-protector-strong
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes;-Wold-style-definition>)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hvd_compile INTERFACE
    -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wformat-truncation=1)
endif()
# The heads and elements of intrusive lists (base/list.h) are parts of other structs. With strict aliasing GCC 12 takes
# the head of a list for unchanged after the first element was removed, and driver/journal/scribe.c wrote records twice.
target_compile_options(hvd_compile INTERFACE
  $<$<AND:$<CONFIG:RelWithDebInfo,Release,MinSizeRel>,$<COMPILE_LANGUAGE:C,CXX>>:-fno-strict-aliasing>)
if(HVD_WERROR)
  target_compile_options(hvd_compile INTERFACE -Werror)
endif()

# These options make a bug harder to use; scripts/check-hardening looks at the installed files. Sanitizers find
# the bug itself, and do not go together with it.
target_link_options(hvd_compile INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT HVD_SANITIZE AND NOT HVD_COVER)
  include(CheckCCompilerFlag)
  include(CheckPIESupported)
  check_pie_supported()
  foreach(flag -ftrivial-auto-var-init=zero -fstack-clash-protection -fcf-protection=full
      -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "hvd_has${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(hvd_compile INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:${flag}>)
    endif()
  endforeach()
  target_compile_options(hvd_compile INTERFACE
    $<$<AND:$<CONFIG:RelWithDebInfo,Release,MinSizeRel>,$<COMPILE_LANGUAGE:C,CXX>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>)
endif()

if(HVD_SANITIZE)
  set(hvd_sanitize -fsanitize=${HVD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(hvd_compile INTERFACE ${hvd_sanitize})
  target_link_options(hvd_compile INTERFACE ${hvd_sanitize})
endif()
if(HVD_COVER)
  target_compile_definitions(hvd_compile INTERFACE HVD_COVER)
  target_compile_options(hvd_compile INTERFACE --coverage -O0 -fprofile-update=atomic)
  target_link_options(hvd_compile INTERFACE --coverage)
endif()
if(HVD_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HVD_FUZZ needs clang: cmake --preset fuzz")
  endif()
  target_compile_options(hvd_compile INTERFACE -fsanitize=fuzzer-no-link)
endif()

# hvd_library(NAME SOURCES a.c b.c LINKS lib...): one folder of one floor, linked statically.
function(hvd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC hvd_compile ${ARG_LINKS})
endfunction()

# hvd_program(NAME SOURCES a.c LINKS lib...): an executable.
function(hvd_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE hvd_compile ${ARG_LINKS})
endfunction()
