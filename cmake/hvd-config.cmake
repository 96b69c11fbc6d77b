# find_package(hvd): the targets hvd::hvd, the shared library, and hvd::hvd_static, the archive with the libraries that it
# needs. Paths are found from where this file lies, so that an installed tree may be moved.
include(${CMAKE_CURRENT_LIST_DIR}/hvd-targets.cmake)
