# Debian packages, one for each component that is installed: `cpack -G DEB` in a build folder, and ./dev package, which
# builds them optimised, for /usr. Included last by CMakeLists.txt. Invariant: cpack finds the libraries that a package
# needs by itself (dpkg-shlibdeps); only what no program names is written here.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hvd-elastic)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake") # CPack puts this text into no package
set(HVD_PACKAGE_CONTACT "hvd-elastic <hvd-elastic@localhost>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_CONTACT ${HVD_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON) # symbols go into packages of their own, NAME-dbgsym
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/worker)
set(CPACK_COMPONENTS_ALL)

configure_file(${CMAKE_SOURCE_DIR}/cmake/debian/changelog.in debian/changelog @ONLY)
execute_process(COMMAND ${HVD_GZIP} -9nkf ${CMAKE_BINARY_DIR}/debian/changelog)

# hvd_package(NAME SECTION SUMMARY DEPENDS TEXT): the package of the component NAME.
function(hvd_package name section summary depends text)
  string(TOUPPER ${name} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${name} PARENT_SCOPE)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/debian/copyright ${CMAKE_BINARY_DIR}/debian/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${name} EXCLUDE_FROM_ALL)
endfunction()

hvd_package(hvd-elastic utils "elastic training: driver and tools" "hvd-agent (= ${PROJECT_VERSION}), libhvd0 (= ${PROJECT_VERSION})"
"Keeps a data-parallel training job alive on machines that come and go. This
package has the driver, the operator's commands, and tools that look at hosts
and at what a job has written.")
hvd_package(hvd-agent utils "elastic training: agent of a host" ""
"The process that starts, watches and ends the workers of a job on one host. A
host that runs workers needs this package, and the library of the training
program.")
hvd_package(libhvd0 libs "elastic training: library of workers" ""
"The library that a training program links: the state that outlives a worker,
the membership of the job, and collectives between its workers.")
hvd_package(libhvd-dev libdevel "elastic training: files to build workers" "libhvd0 (= ${PROJECT_VERSION})"
"Headers, the static library, and files for pkg-config and CMake, to build a
training program with libhvd.")
if(HVD_GLOO)
  hvd_package(libhvd0-gloo libs "elastic training: Gloo as a link of workers" "libhvd0 (= ${PROJECT_VERSION})"
"A module for jobs that are started with --cpu-operations gloo. Nothing else
needs this package.")
endif()
set(CPACK_DEBIAN_LIBHVD0_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/debian/triggers)
include(CPack)
