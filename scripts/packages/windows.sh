# shellcheck shell=bash
# Sourced by what builds for Windows on x86-64: the libraries of the platform, its Python, and Wine, which runs its programs.

# Unpacks the source package NAME of RELEASE (Debian's, or `noble` of Ubuntu) in each FOLDER; the system's own lists stay as they are:
# sources_of RELEASE FOLDER NAME…
sources_of() {
  local release=$1 work=$2 line name options
  shift 2
  line="http://deb.debian.org/debian $release main"
  if [ "$release" = noble ]; then line="[signed-by=$(ubuntu_keyring)] http://archive.ubuntu.com/ubuntu noble main"; fi
  mkdir -p "$work/lists/partial"
  echo "deb-src $line" >"$work/source.list"
  options=(-qq -o Dir::Etc::sourcelist="$work/source.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists")
  (cd "$work" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only "$@" 2>/dev/null) || return 1
  for name in "$@"; do
    mkdir "$work/$name"
    tar -xf "$(find "$work" -maxdepth 1 -name "${name}_*.orig.tar.*" ! -name '*.asc')" --strip-components=1 -C "$work/$name" || return 1
  done
}

# Adds a package to the list of those that a sysroot consists of, with its licence, which this machine has too: ROOT PACKAGE VERSION
record_package() {
  mkdir -p "$1/var/lib/dpkg" "$1/usr/share/doc/$2"
  [ -e "$1/usr/share/doc/$2/copyright" ] || cp "/usr/share/doc/$2/copyright" "$1/usr/share/doc/$2/copyright"
  printf 'Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: all\nMaintainer: Debian\nDescription: in a sysroot\n\n' "$2" "$3" \
    >>"$1/var/lib/dpkg/status"
}

# The cross compiler and Wine, installed; in .deps/sysroot-windows the headers of Debian's packages, and libraries that Debian has no
# mingw package of, built from its sources.
windows_sysroot() {
  local root=$PWD/.deps/sysroot-windows work=$PWD/.deps/sysroot-windows/work source name
  scripts/deps.sh --run --cross-windows --opencl --vulkan  # Wine passes calls on to this machine's drivers
  local headers=(libboost-dev libboost1.74-dev libcli11-dev nlohmann-json3-dev opencl-c-headers opencl-clhpp-headers libvulkan-dev)
  local sources=(fmtlib pcre2 glslang)
  if [ "$(cat "$root/packages.txt" 2>/dev/null)" = "${headers[*]} ${sources[*]}" ]; then return; fi
  echo "windows: making libraries in $root"
  rm -rf "$root"
  mkdir -p "$work"
  (cd "$work" && apt-get download -qq "${headers[@]}" && for name in *.deb; do
    dpkg-deb -x "$name" "$root"
    record_package "$root" "$(dpkg-deb -f "$name" Package)" "$(dpkg-deb -f "$name" Version)"
  done)
  # OpenCL.dll is a part of Windows: what programs are linked with is a list of the functions that cl.h declares.
  (echo EXPORTS && grep -oE '^cl[A-Z][A-Za-z]+' "$root/usr/include/CL/cl.h" | sort -u) >"$work/OpenCL.def"
  mkdir -p "$root/usr/lib"
  x86_64-w64-mingw32-dlltool -d "$work/OpenCL.def" -D OpenCL.dll -l "$root/usr/lib/libOpenCL.dll.a"
  sources_of "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work" "${sources[@]}"
  # What is compiled from sources here, by the name of Debian's own library; what comes from this machine's packages.
  for name in fmtlib:libfmt9 pcre2:libpcre2-8-0 glslang:glslang-dev; do
    source=${name%:*}
    record_package "$root" "${name#*:}" "$(sed -n 's/^Version: //p' "$work/${source}"_*.dsc)"
  done
  for name in libz-mingw-w64-dev gcc-mingw-w64-x86-64-posix-runtime mingw-w64-x86-64-dev; do
    record_package "$root" "$name" "$(dpkg-query -W -f='${Version}' "$name")"
  done
  # glslang without its optimizer, which needs SPIRV-Tools: the plugin does not use it.
  for source in "$work/fmtlib" "$work/pcre2" "$work/glslang" /usr/src/googletest; do
    name=$(basename "$source")
    cmake -S "$source" -B "$work/build-$name" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/windows.cmake" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_INSTALL_PREFIX="$root/usr" -DFMT_TEST=OFF -DFMT_DOC=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF \
      -DENABLE_OPT=OFF -DENABLE_HLSL=OFF -DENABLE_GLSLANG_BINARIES=OFF -DENABLE_CTEST=OFF -DENABLE_PCH=OFF
    cmake --build "$work/build-$name" --target install
  done >"$root.log" 2>&1 || { tail -n 40 "$root.log" >&2; return 1; }
  rm -rf "$work"
  echo "${headers[*]} ${sources[*]}" >"$root/packages.txt"
}

# What the extension module is linked with and runs in, in .deps/python-windows/VERSION, for 3.11 and 3.12: headers and library from the
# release's sources, python312.dll and the modules in C from panda3d's wheel, which has them for programs that it packs; PyPI and Debian have
# no Python for Windows of their own. Made here: python.exe, and python3.dll, which passes the stable ABI's names on.
windows_python() {
  local version=$1 root=$PWD/.deps/python-windows/$1 work=$PWD/.deps/python-windows/$1/work release=noble dll=python${1/./}.dll source
  case "$version" in
    3.11) release=bookworm ;;
    3.12) ;;
    *) echo "windows: no Python $version for Windows: 3.11 or 3.12" >&2; return 1 ;;
  esac
  [ ! -e "$root/python.exe" ] || return 0
  echo "windows: making Python $version in $root"
  rm -rf "$root"
  mkdir -p "$work"
  sources_of "$release" "$work" "python$version"
  source=$work/python$version
  (cd "$work" && python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --platform win_amd64 --implementation cp \
    --python-version "$version" panda3d && python3 -m zipfile -e panda3d-*.whl panda3d)
  mkdir "$root/DLLs"
  cp "$work"/panda3d/deploy_libs/{"$dll",[Vv][Cc][Rr]*.dll} "$root"
  cp "$work"/panda3d/deploy_libs/{*.pyd,lib*.dll,sqlite3.dll} "$root/DLLs"
  rm -f "$root/DLLs/_wmi.pyd"  # Wine 8 ends programs that use it; `platform` does without
  cp -r "$source/Lib" "$source/Include" "$root"
  cp "$source/PC/pyconfig.h" "$root/Include"
  rm -rf "$root"/Lib/{test,idlelib,tkinter}
  # Import libraries: of all names that the DLL has, and of the stable ABI's, which python3.dll passes on.
  mkdir "$root/libs"
  x86_64-w64-mingw32-objdump -p "$root/$dll" | sed -nE '/Ordinal.Name Pointer/,/^$/s/^\t\[ *[0-9]+\] //p' | sed '1i EXPORTS' >"$work/python.def"
  x86_64-w64-mingw32-dlltool -d "$work/python.def" -D "$dll" -l "$root/libs/lib${dll%.dll}.dll.a"
  sed -nE "s/^EXPORT_FUNC\\((.*)\\)/\\1 = ${dll%.dll}.\\1/p; s/^EXPORT_DATA\\((.*)\\)/\\1 = ${dll%.dll}.\\1 DATA/p" "$source/PC/python3dll.c" \
    | sed '1i LIBRARY python3.dll\nEXPORTS' >"$work/python3.def"
  x86_64-w64-mingw32-gcc -shared -nostdlib -Wl,--entry=0,--out-implib="$root/libs/libpython3.dll.a" -o "$root/python3.dll" "$work/python3.def"
  echo '#include <wchar.h>
        __declspec(dllimport) int Py_Main(int, wchar_t**);
        int wmain(int count, wchar_t** words) { return Py_Main(count, words); }' >"$work/python.c"
  x86_64-w64-mingw32-gcc -municode -o "$root/python.new" "$work/python.c" "$root/libs/lib${dll%.dll}.dll.a"
  rm -rf "$work"
  mv "$root/python.new" "$root/python.exe"
}

# Starts Wine with PREFIX in the place of ~/.wine, and a screen, without which it has no Vulkan.
start_wine() {
  export WINEPREFIX=$1 WINEDEBUG=-all
  mkdir -p "$1"
  wineserver -k || true  # what still runs there from before has no screen
  coproc screen { exec Xvfb -displayfd 1 -screen 0 640x480x24 -nolisten tcp 2>/dev/null; }
  trap 'kill "$screen_PID"' EXIT
  read -r DISPLAY <&"${screen[0]}"
  export DISPLAY=:$DISPLAY
  wineboot -i >/dev/null 2>&1
  wine reg add 'HKCU\Software\Wine\WineDbg' /v ShowCrashDialog /t REG_DWORD /d 0 /f >/dev/null 2>&1  # tests crash on purpose
}
