# Manual pages: help2man makes them of what --help says, so each option is there. Without help2man there are none.

find_program(HVD_HELP2MAN help2man)
find_program(HVD_GZIP gzip)
add_custom_target(manuals ALL)

# hvd_manual(PROGRAM COMPONENT SUMMARY): the page of a program that this build makes, installed with the component.
function(hvd_manual program component summary)
  if(NOT HVD_MANUALS OR NOT HVD_HELP2MAN OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${program}.1)
  add_custom_command(OUTPUT ${page}.gz
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 # a search for leaks needs ptrace
      ${HVD_HELP2MAN} --no-info --name ${summary} --output ${page}.made $<TARGET_FILE:${program}>
    COMMAND awk -f ${CMAKE_SOURCE_DIR}/cmake/manual.awk ${page}.made > ${page}
    COMMAND ${HVD_GZIP} -9nf ${page}
    DEPENDS ${program} ${CMAKE_SOURCE_DIR}/cmake/manual.awk
    VERBATIM)
  add_custom_target(${program}-manual DEPENDS ${page}.gz)
  add_dependencies(manuals ${program}-manual)
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
