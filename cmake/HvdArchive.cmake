# hvd_own_archives(RET LIB...): the static libraries of this tree that these are or need.
function(hvd_own_archives ret)
  set(pending ${ARGN})
  set(found)
  while(pending)
    list(POP_FRONT pending library)
    # The user of a static library needs its private links too; CMake marks them so.
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
    if(library IN_LIST found OR NOT TARGET ${library})
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    get_target_property(imported ${library} IMPORTED)
    if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
      list(APPEND found ${library})
    endif()
    get_target_property(needs ${library} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(APPEND pending ${needs})
    endif()
  endwhile()
  set(${ret} ${found} PARENT_SCOPE)
endfunction()

# Beside clang CMake names those of LLVM, which cannot do all of this.
find_program(HVD_LD ld REQUIRED)
find_program(HVD_OBJCOPY objcopy REQUIRED)

# hvd_one_archive(NAME OBJECTS LIB SYMBOLS PATTERN): LIB and what it needs of this tree as an archive
# of one object, in which nothing is visible but what the pattern fits: a program may have a buf.c
# of its own. Only what LIB uses goes in.
#
# ld itself, not the compiler: that one would add the run-time parts of sanitizers, which belong to
# the program. Groups (of C++ templates) are dissolved first, as a linker keeps one of several of a
# name, and would take a foreign one for ours after its symbols have been hidden.
function(hvd_one_archive name)
  cmake_parse_arguments(ARG "" "OBJECTS;SYMBOLS" "" ${ARGN})
  hvd_own_archives(archives ${ARG_OBJECTS})
  list(REMOVE_ITEM archives ${ARG_OBJECTS})
  set(files)
  foreach(archive IN LISTS archives)
    list(APPEND files $<TARGET_FILE:${archive}>)
  endforeach()
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${HVD_LD} -r --force-group-allocation -o ${object}.all
      --whole-archive $<TARGET_FILE:${ARG_OBJECTS}> --no-whole-archive
      --start-group ${files} --end-group
    COMMAND ${HVD_OBJCOPY} --wildcard --keep-global-symbol=${ARG_SYMBOLS} ${object}.all ${object}
    COMMAND ${CMAKE_COMMAND} -E rm ${object}.all
    DEPENDS ${ARG_OBJECTS} ${archives}
    COMMENT "Linking ${name} into one object" VERBATIM)
  add_library(${name} STATIC ${object})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
endfunction()
