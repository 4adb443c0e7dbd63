# SQL lives in .sql files; this makes a header of one. Used by common/log/local and common/store.
#
#   include(${CMAKE_SOURCE_DIR}/common/sql.cmake)
#   baton_sql(TARGET FILE.sql HEADER PREFIX)
#
# In the file every block begins with a line `-- name: NAME` and goes on to the next such line; what
# stands before the first is a comment for readers. HEADER is relative to the root of the include
# path (`common/store/queries.h`) and holds, for PREFIX `store`:
#
#   enum store_sql { NAME, ..., STORE_SQL_COUNT };
#   static const char *const store_sql[];        the text of each, one or many statements
#   static const char *const store_sql_names[];  its name, for messages and tests
#
# The same file is function (when included) and generator (when run by cmake -P).

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(BATON_SQL_SCRIPT ${CMAKE_CURRENT_LIST_FILE} CACHE INTERNAL "")

  function(baton_sql target sql header prefix)
    get_filename_component(in ${sql} ABSOLUTE)
    set(out ${CMAKE_BINARY_DIR}/generated/${header})
    get_filename_component(out_dir ${out} DIRECTORY)
    file(MAKE_DIRECTORY ${out_dir})
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DIN=${in} -DOUT=${out} -DHEADER=${header} -DPREFIX=${prefix}
              -P ${BATON_SQL_SCRIPT}
      DEPENDS ${in} ${BATON_SQL_SCRIPT}
      COMMENT "SQL ${header}" VERBATIM)
    target_sources(${target} PRIVATE ${out})
  endfunction()
  return()
endif()

file(READ ${IN} text)
string(REGEX MATCHALL "\n-- name: [A-Z0-9_]+" marks "\n${text}")
if(NOT marks)
  message(FATAL_ERROR "${IN}: no line `-- name: NAME`")
endif()
set(names ${marks})
list(TRANSFORM names REPLACE "\n-- name: " "")
set(unique ${names})
list(REMOVE_DUPLICATES unique)
if(NOT "${unique}" STREQUAL "${names}")
  message(FATAL_ERROR "${IN}: a name is used twice")
endif()

# The text as C strings: a string for each line, a new array element at each mark.
set(text "\n${text}")
string(FIND "${text}" "\n-- name: " first)
string(SUBSTRING "${text}" ${first} -1 text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")
string(REGEX REPLACE "\n$" "" text "${text}")
string(REGEX REPLACE "\n([^\n]*)" "\n        \"\\1\\\\n\"" text "${text}")
string(REGEX REPLACE "\n        \"-- name: ([A-Z0-9_]+)[^\n]*" ",\n    [\\1] =" text "${text}")
string(SUBSTRING "${text}" 2 -1 text) # without the comma before the first

string(TOUPPER ${PREFIX} upper)
string(REPLACE "/" "_" guard "${HEADER}")
string(REPLACE "." "_" guard "${guard}")
string(TOUPPER ${guard} guard)
string(REPLACE ";" ",\n    " enum "${names}")
string(REPLACE ";" "\",\n    \"" quoted "${names}")
get_filename_component(base ${IN} NAME)
file(WRITE ${OUT}.new "/* Made from ${base} by common/sql.cmake: change that file. */
#ifndef BATON_${guard}
#define BATON_${guard}

enum ${PREFIX}_sql {
    ${enum},
    ${upper}_SQL_COUNT
};

static const char *const ${PREFIX}_sql[] __attribute__((unused)) = {
${text},
};

static const char *const ${PREFIX}_sql_names[] __attribute__((unused)) = {
    \"${quoted}\"
};

#endif
")
file(RENAME ${OUT}.new ${OUT})
