# Run by `cmake --install` (CMakeLists.txt, which sets source, bindir, datadir): the units as they stand here,
# with the prefix that is installed to, which `--prefix` may have changed, in place of /usr/local.
foreach(unit baton-worker@.service baton-coordinator.service)
  file(READ "${source}/${unit}" text)
  string(REPLACE "/usr/local/bin/" "${CMAKE_INSTALL_PREFIX}/${bindir}/" text "${text}")
  string(REPLACE "/usr/local/share/" "${CMAKE_INSTALL_PREFIX}/${datadir}/" text "${text}")
  set(at "${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}")
  message(STATUS "Installing: $ENV{DESTDIR}${at}")
  file(WRITE "$ENV{DESTDIR}${at}" "${text}")
endforeach()
