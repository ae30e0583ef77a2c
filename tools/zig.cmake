# SPDX-License-Identifier: Apache-2.0
# Compile for a processor and a libc that are not this machine's; tools/make_wheel.py sets the variables.
#   WBSCOPE_ZIG     the program zig of the Python package ziglang
#   WBSCOPE_TARGET  such as x86_64-linux-gnu.2.28: symbols of glibc that are newer are not used
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{WBSCOPE_TARGET}")
set(CMAKE_CXX_COMPILER "$ENV{WBSCOPE_ZIG}" c++)
set(CMAKE_CXX_COMPILER_TARGET "$ENV{WBSCOPE_TARGET}")
set(CMAKE_CXX_ARCHIVE_CREATE "\"$ENV{WBSCOPE_ZIG}\" ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "\"$ENV{WBSCOPE_ZIG}\" ranlib <TARGET>")
# As Debian's GCC does without being told.
set(CMAKE_CXX_FLAGS_INIT "-fPIE")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -pie")
